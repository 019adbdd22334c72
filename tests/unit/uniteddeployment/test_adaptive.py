"""Subsets whose pods find no node, in both modes (uniteddeployment.md §10 and §11)."""

from datetime import timedelta
from typing import Any

from tests.testkit.plans import code_list
from tests.unit.uniteddeployment.build import NOW, World, at, pod_of

RESERVED = "apps.kruise.io/united-deployment-reserved-pod"
SUBSETS = [{"name": "a", "maxReplicas": 4}, {"name": "b", "maxReplicas": 4}, {"name": "c"}]


def adaptive(*, reserve: bool = False, critical: int = 15, duration: int = 60) -> dict[str, Any]:
    settings = {"rescheduleCriticalSeconds": critical, "unschedulableDuration": duration}
    return {"type": "Adaptive", "adaptive": settings | ({"reserveUnschedulablePods": True} if reserve else {})}


def world(
    *, replicas: int = 7, reserve: bool = False, subsets: list[dict[str, Any]] | None = None, duration: int = 60
) -> World:
    topology = {"subsets": subsets or SUBSETS, "scheduleStrategy": adaptive(reserve=reserve, duration=duration)}
    made = World([], replicas=replicas, topology=topology)
    made.step()
    return made


def later(made: World, seconds: float) -> None:
    made.now = NOW + timedelta(seconds=seconds)


def test_the_time_line_of_a_stuck_subset() -> None:
    """The example at the end of §10."""
    made = world()
    assert made.replicas() == {"a": 4, "b": 3, "c": 0}
    made.run_pods(broken="b")
    plan = made.step()
    assert plan.wake_at is not None
    assert at(15) == plan.wake_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    later(made, 16)
    made.step()
    assert made.subset_condition("b")["status"] == "False"
    assert made.replicas() == {"a": 4, "b": 3, "c": 0}  # the mark is stored first
    plan = made.step()
    assert "SubsetUnschedulable" in code_list(plan)
    assert made.replicas() == {"a": 4, "b": 0, "c": 3}
    condition = made.subset_condition("b")
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "reschedule",
        "timeout pending pods found",
    )
    made.run_pods()
    later(made, 75)
    made.step()
    assert made.subset_condition("b")["status"] == "False"
    later(made, 77)
    made.step()
    condition = made.subset_condition("b")
    text = "unschedulable subset recovered after 60.000000 seconds"
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "recover", text)
    assert made.replicas() == {"a": 4, "b": 0, "c": 3}
    made.change({"replicas": 8})
    made.step()
    assert made.replicas() == {"a": 4, "b": 1, "c": 3}


def test_a_rollout_moves_no_pods_out_of_a_marked_subset() -> None:
    """Pods that are replaced are not ready, or not there at all for a moment."""
    made = world()
    made.run_pods(broken="b")
    for pod in [pod for pod in made.pods if pod["metadata"]["name"] in ("b-0", "b-1")]:
        pod["spec"]["nodeName"] = "node-1"
    later(made, 16)
    made.step()
    for _ in range(2):  # the pod that goes is still there when it is planned again
        made.step()
        assert made.replicas() == {"a": 4, "b": 2, "c": 1}
    made.run_pods()
    for workload in made.workloads:
        workload["status"]["readyReplicas"] = 0
    made.pods = [pod for pod in made.pods if pod["metadata"]["name"] != "b-0"]
    made.step()
    assert made.replicas() == {"a": 4, "b": 2, "c": 1}


def test_a_subset_that_keeps_pending_pods_is_never_seen_to_recover() -> None:
    made = world(replicas=6, subsets=[{"name": "a", "minReplicas": 2, "maxReplicas": 4}, {"name": "b"}])
    made.run_pods(broken="a")
    later(made, 16)
    made.step()
    made.step()
    assert made.replicas() == {"a": 2, "b": 4}
    made.run_pods(broken="a")
    first = made.subset_condition("a")
    later(made, 100)
    made.step()
    condition = made.subset_condition("a")
    assert (condition["status"], condition["lastTransitionTime"] > first["lastTransitionTime"]) == ("False", True)


def test_pods_that_wait_for_something_else_are_left_where_they_are() -> None:
    made = world()
    made.run_pods(broken="b")
    for pod in made.pods:
        for condition in pod["status"]["conditions"]:
            condition["reason"] = "SchedulerError"
    later(made, 100)
    made.step()
    assert made.replicas() == {"a": 4, "b": 3, "c": 0}


def test_a_subset_without_trouble_has_no_condition() -> None:
    made = world()
    made.settle()
    assert made.subset_condition("a") == {}


def test_nothing_is_moved_under_the_fixed_strategy() -> None:
    """E24."""
    made = World([{"name": "a"}, {"name": "b"}])
    made.step()
    made.run_pods(broken="a")
    later(made, 1000)
    made.step()
    assert made.replicas() == {"a": 2, "b": 2}
    assert made.subset_condition("a") == {}


def test_what_fits_nowhere_is_said() -> None:
    """A12."""
    made = world(replicas=4, subsets=[{"name": "a"}, {"name": "b"}])
    made.run_pods(broken="a")
    later(made, 16)
    made.step()
    made.step()
    made.run_pods(broken="ab")
    later(made, 32)
    made.step()
    plan = made.step()
    assert made.replicas() == {"a": 0, "b": 0}
    assert "SubsetsFull" in code_list(plan)


AB = [{"name": "a"}, {"name": "b"}]


def reserving(seconds: float = 16) -> World:
    """Return a world in which three pods of `a` are unschedulable for too long."""
    made = world(replicas=3, reserve=True, subsets=AB, duration=5)
    made.run_pods(broken="a")
    later(made, seconds)
    made.step()
    return made


def labels(made: World, subset: str) -> list[str]:
    return [pod["metadata"]["labels"].get(RESERVED, "") for pod in made.pods if pod["metadata"]["name"][0] == subset]


def ready_after(made: World, count: int, seconds: float) -> None:
    """Make the first pods of `a` ready."""
    for number in range(count):
        index = next(index for index, pod in enumerate(made.pods) if pod["metadata"]["name"] == f"a-{number}")
        made.pods[index] = pod_of(f"a-{number}", made.pods[index]["metadata"]["labels"], since=seconds)
    made.workload("a")["status"]["readyReplicas"] = count


def test_reserved_pods_are_kept_while_others_stand_in() -> None:
    """The example of §11.5."""
    made = reserving()
    assert labels(made, "a") == ["true"] * 3
    assert made.replicas() == {"a": 3, "b": 3}
    condition = made.subset_condition("a")
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "reschedule",
        "reserved pods found",
    )
    made.run_pods()
    made.step()
    status = made.owner["status"]
    assert (status["replicas"], status["reservedPods"], status["readyReplicas"]) == (3, 3, 3)
    assert status["labelSelector"] == f"app=ud,{RESERVED}=false"
    ready_after(made, 1, 20)
    later(made, 24)
    made.step()
    assert made.replicas() == {"a": 3, "b": 3}
    later(made, 25)
    made.step()
    assert sorted(labels(made, "a")) == ["false", "true", "true"]
    assert made.replicas() == {"a": 3, "b": 2}
    made.run_pods()
    ready_after(made, 3, 20)
    later(made, 26)
    made.step()
    assert made.replicas() == {"a": 3, "b": 0}
    condition = made.subset_condition("a")
    assert (condition["status"], condition["message"]) == ("True", "no reserved pods")


def test_a_subset_that_joins_in_reservation_mode_is_tried_first() -> None:
    """E22."""
    made = world(replicas=3, reserve=True, subsets=AB, duration=5)
    made.settle()
    topology = {"subsets": [*AB, {"name": "c"}], "scheduleStrategy": adaptive(reserve=True, duration=5)}
    made.change({"topology": topology})
    made.step()
    condition = made.subset_condition("c")
    assert (condition["status"], condition["reason"]) == ("False", "created")


def test_a_mark_for_pods_to_come_stays_until_they_come() -> None:
    """§11.3: passes that see a subset before its pods do not let them in untried."""
    made = world(replicas=3, reserve=True, subsets=AB, duration=5)
    made.settle()
    topology = {"subsets": [{"name": "c"}, *AB], "scheduleStrategy": adaptive(reserve=True, duration=5)}
    made.change({"topology": topology})
    for _ in range(3):
        made.step()
    assert made.subset_condition("c")["reason"] == "created"
    assert made.replicas()["c"] == 3
    made.run_pods()
    made.step()
    assert labels(made, "c") == ["true"] * 3
    assert made.replicas() == {"a": 3, "b": 0, "c": 3}
    later(made, 6)
    made.step()
    assert labels(made, "c") == ["false"] * 3
    assert made.replicas() == {"a": 0, "b": 0, "c": 3}
    assert made.subset_condition("c")["status"] == "True"


def test_pods_by_which_a_subset_grows_that_has_just_recovered_are_tried() -> None:
    """R6 to R8 with passes before the pods are there."""
    made = reserving()
    made.run_pods()
    ready_after(made, 3, 20)
    later(made, 26)
    made.change({"replicas": 5})
    for _ in range(3):
        made.step()
    condition = made.subset_condition("a")
    assert (condition["status"], condition["message"]) == ("False", "subset just recovered scaled up")
    made.run_pods()
    made.step()
    assert sorted(labels(made, "a")) == ["false"] * 3 + ["true"] * 2
    assert made.replicas() == {"a": 5, "b": 2}


def test_old_pods_of_a_slow_rollout_count_as_reserved() -> None:
    made = world(replicas=2, reserve=True, subsets=AB)
    made.settle()
    template = made.owner["spec"]["template"]["cloneSetTemplate"]
    template["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    made.step()
    made.step()
    later(made, 14)
    made.step()
    assert made.replicas() == {"a": 2, "b": 0}
    later(made, 16)
    made.step()
    assert made.replicas() == {"a": 2, "b": 2}
    assert labels(made, "a") == ["true", "true"]


def test_a_child_whose_pods_are_reserved_may_replace_them_faster() -> None:
    """§9.5: with the next update that it gets anyway."""
    made = reserving()
    made.run_pods()
    template = made.owner["spec"]["template"]["cloneSetTemplate"]
    template["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    made.step()
    assert made.workload("a")["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == 3
    assert "maxUnavailable" not in made.workload("b")["spec"]["updateStrategy"]["rollingUpdate"]
