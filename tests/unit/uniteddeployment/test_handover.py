"""Pods move between subsets without fewer of them serving than the total (uniteddeployment.md §15, E1 and E2)."""

from datetime import timedelta

from flotilla_topology.uniteddeployment.children import ADVANCED_STATEFUL_SETS, CLONE_SETS, ChildKind
from tests.testkit.plans import code_list
from tests.unit.uniteddeployment.build import NOW, SUBSET, World, intents

AB = [{"name": "a"}, {"name": "b"}]
ABC = [*AB, {"name": "c"}]


def at_rest(kind: ChildKind = CLONE_SETS) -> World:
    """Return a world of two subsets with two ready pods each."""
    world = World(AB, kind=kind)
    world.settle()
    return world


def test_a_removed_subset_goes_when_the_others_serve() -> None:
    """E1."""
    world = at_rest()
    world.change({"topology": {"subsets": [{"name": "a"}]}})
    made = world.step()
    assert intents(made) == ["update CloneSet"]
    assert "WaitingForOtherSubsets" in code_list(made)
    assert world.replicas() == {"a": 4, "b": 2}
    world.run_pods()
    made = world.step()
    assert intents(made) == ["delete CloneSet"]
    world.pods = [pod for pod in world.pods if pod["metadata"]["labels"][SUBSET] == "a"]
    world.settle()
    assert [one["name"] for one in world.owner["status"]["subsetStatuses"]] == ["a"]


def test_a_subset_without_ready_pods_goes_at_once() -> None:
    world = World(AB)
    world.step()
    world.run_pods(broken="b")
    world.change({"topology": {"subsets": [{"name": "a"}]}})
    assert "delete CloneSet" in intents(world.plan())


def test_a_new_subset_takes_pods_from_others_when_its_own_serve() -> None:
    """E2. The status shows what is allocated, also while pods wait."""
    world = at_rest()
    world.change({"topology": {"subsets": ABC}})
    made = world.step()
    assert "WaitingForOtherSubsets" in code_list(made)
    assert world.replicas() == {"a": 2, "b": 2, "c": 1}
    world.run_pods(broken="c")
    world.step()
    assert world.replicas() == {"a": 2, "b": 2, "c": 1}
    assert [one["replicas"] for one in world.owner["status"]["subsetStatuses"]] == [1, 2, 1]
    world.pods = [pod for pod in world.pods if pod["metadata"]["labels"][SUBSET] != "c"]
    world.settle()
    assert world.replicas() == {"a": 1, "b": 2, "c": 1}


def test_pods_that_do_not_come_are_waited_for_as_long_as_a_deployment_would() -> None:
    world = at_rest()
    world.change({"topology": {"subsets": ABC}})
    world.step()
    world.run_pods(broken="c")
    made = world.step()
    assert made.wake_at is not None
    assert made.wake_at > NOW + timedelta(seconds=600)
    world.now = made.wake_at
    world.step()
    assert world.replicas() == {"a": 1, "b": 2, "c": 1}


def test_replicas_that_are_scaled_in_go_at_once_where_all_serve() -> None:
    world = at_rest()
    world.change({"replicas": 2})
    world.step()
    assert world.replicas() == {"a": 1, "b": 1}


def test_pods_that_do_not_serve_go_first_and_at_once() -> None:
    world = at_rest()
    world.run_pods(broken="b")
    world.pods = [pod for pod in world.pods if pod["metadata"]["labels"][SUBSET] == "a"]
    world.run_pods(broken="b")
    world.change({"replicas": 2})
    world.step()
    assert world.replicas() == {"a": 2, "b": 1}, "the pod of b may still come"
    world.run_pods()
    world.now += timedelta(seconds=700)
    world.step()
    assert world.replicas() == {"a": 1, "b": 1}


def test_no_pod_serves_in_a_set_that_is_scaled_to_zero() -> None:
    world = at_rest()
    world.change({"replicas": 0, "topology": {"subsets": ABC}})
    world.step()
    assert world.replicas() == {"a": 0, "b": 0, "c": 0}


def test_a_stateful_child_keeps_ready_pods_below_those_that_it_gives_up() -> None:
    """Its pods go by ordinal, whether they are ready or not."""
    world = at_rest(ADVANCED_STATEFUL_SETS)
    world.change({"replicas": 8})
    world.settle()
    assert world.replicas() == {"a": 4, "b": 4}
    for pod in world.pods:
        if pod["metadata"]["name"] == "a-0":
            pod["status"]["conditions"] = []
    world.change({"replicas": 7, "topology": {"subsets": ABC}})
    world.step()
    assert world.replicas() == {"a": 4, "b": 4, "c": 2}


def test_replicas_without_pods_cost_no_time() -> None:
    world = at_rest()
    world.workload("a")["spec"]["replicas"] = 2_000_000_000
    world.step()
    assert world.replicas()["a"] == 2


def test_ready_pods_count_though_their_workload_has_not_said_so_yet() -> None:
    """Its controller may be paused."""
    world = at_rest()
    world.workload("b")["status"]["readyReplicas"] = 0
    world.change({"topology": {"subsets": [{"name": "a"}]}})
    assert intents(world.plan()) == ["update CloneSet"]
