"""The worked examples of ephemeraljob.md §11 that concern the controller: pods p1 to p5 match, in this order."""

import pytest

from flotilla_common.api.resources import POD
from tests.unit.ephemeraljob.world import BROKEN, DONE, RUNS, World, container, marked

ALL = ("p1", "p2", "p3", "p4", "p5")


def codes(world: World) -> set[str]:
    return {reason.code for reason in world.settle().reasons}


def ended(world: World) -> bool:
    return world.status().completion_time is not None


def test_1_one_after_the_other():
    world = World(replicas=3, parallelism=1)
    for number, pod in enumerate(ALL[:3], 1):
        assert "Injecting" in {reason.code for reason in world.reconcile().reasons}
        world.settle()
        assert world.injected() == list(ALL[:number])
        assert world.status().phase == "Unknown"
        world.kubelet(pod, state=RUNS)
        assert codes(world) == {"Running"} | ({"WaitingForParallelism"} if number < 3 else set())
        assert (world.status().phase, world.counts()) == ("Running", (3, 1, number - 1, 0, 0))
        world.kubelet(pod, state=DONE)
    assert codes(world) == {"Completed"}
    assert (world.status().phase, world.counts(), ended(world)) == ("Succeeded", (3, 0, 3, 0, 0), True)
    assert world.conditions() == {"Initialized": "Initialized", "JobSucceeded": "JobSucceeded"}


def test_2_all_at_once():
    world = World(parallelism=5)
    world.settle()
    assert world.injected() == list(ALL)
    assert world.injections == [["p1"], ["p2", "p3"], ["p4", "p5"]]


@pytest.mark.parametrize(("parallelism", "injected"), [(None, ["p1"]), (0, []), (-1, []), (2, ["p1", "p2"])])
def test_3_and_4_parallelism(parallelism: int | None, injected: list[str]):
    world = World(parallelism=parallelism)
    assert "WaitingForParallelism" in codes(world)
    assert world.injected() == injected
    assert (world.status().phase, world.counts()) == ("Unknown", (5, 0, 0, 0, 0))


def test_4_raising_it_starts():
    world = World(parallelism=0)
    world.settle()
    world.change(parallelism=2)
    world.settle()
    assert world.injected() == ["p1", "p2"]


@pytest.mark.parametrize(
    "world", [pytest.param(World(replicas=0), id="4b: no replicas"), pytest.param(World(pods=0), id="8: no pods")]
)
def test_4b_and_8_nothing_matches(world: World):
    assert codes(world) == {"MatchedEmpty"}
    assert (world.status().phase, world.counts()) == ("Waiting", (0, 0, 0, 0, 0))
    assert world.conditions() == {"Initialized": "Initialized", "MatchedEmpty": "MatchEmpty"}


def test_8_a_pod_that_comes_starts_it():
    world = World(pods=0)
    world.settle()
    world.context.woken.clear()
    world.pod("late")
    assert world.context.woken == [("ns", "j")]
    world.settle()
    assert (world.injected(), world.status().phase) == (["late"], "Unknown")


@pytest.mark.parametrize("state", ["no command", BROKEN])
def test_5_a_command_that_does_not_exist(state: str):
    world = World(replicas=3, parallelism=3)
    world.settle()
    world.kubelet(*ALL[:3], state=state)
    assert codes(world) == {"Completed", "FailedPods"}
    assert (world.status().phase, world.counts(), ended(world)) == ("Failed", (3, 0, 0, 3, 0), True)
    assert world.conditions() == {"Initialized": "Initialized", "JobFailed": "CreateFailed"}


def test_6_some_fail():
    world = World(replicas=3, parallelism=3)
    world.settle()
    world.kubelet("p1", "p2", state=DONE)
    world.kubelet("p3", state=BROKEN)
    assert codes(world) == {"Mixed", "FailedPods"}
    assert (world.status().phase, world.counts(), ended(world)) == ("Unknown", (3, 0, 2, 1, 0), False)
    world.change(activeDeadlineSeconds=60)
    assert world.settle().wake_at is not None
    assert codes(world) == {"Mixed", "FailedPods"}
    world.later(60)
    assert (world.status().phase, world.counts(), ended(world)) == ("Failed", (3, 0, 2, 1, 0), True)
    assert world.conditions()["JobFailed"] == "DeadlineExceeded"


def test_7_fewer_pods_than_replicas():
    world = World(replicas=10, parallelism=5)
    world.settle()
    world.kubelet(*ALL, state=DONE)
    assert codes(world) == {"BelowReplicas"}
    assert (world.status().phase, world.counts(), ended(world)) == ("Unknown", (5, 0, 5, 0, 0), False)


def test_9_containers_that_run_for_ever():
    world = World(parallelism=2, activeDeadlineSeconds=30)
    world.settle()
    world.kubelet("p1", "p2", state=RUNS)
    world.settle()
    world.later(29)
    assert not ended(world)
    assert "DeadlineExceeded" in {reason.code for reason in world.later(1).reasons}
    assert (world.status().phase, ended(world)) == ("Failed", True)
    assert world.conditions() == {"Initialized": "Initialized", "JobFailed": "DeadlineExceeded"}
    assert world.injected() == ["p1", "p2"]


def test_10_a_container_of_another_job_has_the_name():
    world = World(pods=2, replicas=1)
    world.edit_pod("p1", {"spec": {"ephemeralContainers": [marked(uid="other")]}})
    assert {"Conflicts", "Running"} == codes(world)
    assert (world.injected(), world.counts()[0]) == (["p2"], 1)
    world.vanish(POD, "p2")
    assert {"Conflicts", "MatchedEmpty"} == codes(world)
    assert (world.counts()[0], world.status().phase) == (0, "Waiting")


def test_11_two_jobs_with_different_names():
    world = World(pods=1)
    world.job("k", containers=[container("other")])
    world.settle("j")
    world.settle("k")
    assert world.injected() == world.injected("uid-k") == ["p1"]
    assert world.counts("j")[0] == world.counts("k")[0] == 1


@pytest.mark.parametrize(
    ("b", "counts"),
    [
        pytest.param(RUNS, (1, 1, 0, 0, 0), id="12: b runs"),
        pytest.param(BROKEN, (1, 0, 0, 1, 0), id="13: b exits 2"),
        pytest.param("created", (1, 0, 0, 0, 1), id="b waits"),
        pytest.param(DONE, (1, 0, 1, 0, 0), id="both are done"),
        pytest.param("", (1, 0, 0, 0, 0), id="nothing is known of b"),
    ],
)
def test_12_and_13_two_containers(b: str, counts: tuple[int, ...]):
    world = World(pods=1, containers=[container("a"), container("b")])
    world.settle()
    world.kubelet("p1", state=DONE, name="a")
    if b:
        world.kubelet("p1", state=b, name="b")
    world.settle()
    assert world.counts() == counts


def test_14_paused_from_the_start():
    world = World(paused=True)
    assert codes(world) == {"PausedByUser"}
    assert (world.status().phase, world.injected()) == ("Paused", [])
    assert world.status().start_time is not None


def test_15_paused_while_it_runs():
    world = World()
    world.settle()
    world.kubelet("p1", state=RUNS)
    world.settle()
    world.change(paused=True)
    assert codes(world) == {"PausedByUser", "Running"}
    assert (world.status().phase, world.counts()) == ("Paused", (5, 1, 0, 0, 0))
    world.kubelet("p1", state=DONE)
    world.settle()
    assert (world.status().phase, world.counts(), world.injected()) == ("Paused", (5, 0, 1, 0, 0), ["p1"])


def test_16_unpaused_after_the_deadline():
    world = World(paused=True, activeDeadlineSeconds=30)
    assert world.settle().wake_at is not None
    assert world.later(60).wake_at is None, "a deadline that has passed does not wake the job again and again"
    assert (world.status().phase, ended(world)) == ("Paused", False)
    world.change(paused=False)
    world.settle()
    assert (world.status().phase, ended(world), world.injected()) == ("Failed", True, [])
    assert world.conditions()["JobFailed"] == "DeadlineExceeded"


def test_17_the_next_pod_moves_up():
    world = World(replicas=3, parallelism=5)
    world.settle()
    world.kubelet("p1", state=DONE)
    world.settle()
    assert world.counts() == (3, 0, 1, 0, 0)
    world.vanish(POD, "p1")
    world.settle()
    assert (world.counts(), world.injected()) == ((3, 0, 0, 0, 0), ["p2", "p3", "p4"])


@pytest.mark.parametrize(
    ("ttl", "seconds"),
    [pytest.param(0, 0, id="18"), pytest.param(None, 1800, id="19"), pytest.param(600, 600, id="given")],
)
def test_18_and_19_time_to_live(ttl: int | None, seconds: int):
    world = World(pods=1, ttlSecondsAfterFinished=ttl)
    world.settle()
    world.kubelet("p1", state=DONE)
    if seconds:
        world.settle()
        assert (world.status().phase, ended(world)) == ("Succeeded", True)
        assert "j" in world.jobs
        world.later(seconds - 2)
        assert "j" in world.jobs
        world.later(2)
    world.settle()
    assert "j" not in world.jobs
    assert world.injected() == ["p1"]


@pytest.mark.parametrize("pods", [5, 0])
def test_20_deleted_while_containers_run(pods: int):
    world = World(pods=pods)
    world.settle()
    world.change(meta={"deletionTimestamp": "2026-03-01T12:00:00Z"})
    made = world.reconcile()
    assert [reason.code for reason in made.reasons] == ["Terminating"]
    assert "j" not in world.jobs
    assert world.injected() == ["p1"][:pods]


def test_21_the_same_job_again():
    world = World(replicas=2, pods=2)
    world.settle()
    world.change(meta={"deletionTimestamp": "2026-03-01T12:00:00Z"})
    world.reconcile()
    world.job(replicas=2)
    world.change(meta={"uid": "uid-second"})
    assert "Conflicts" in codes(world)
    assert (world.injected("uid-second"), world.counts()[0]) == (["p2"], 1)


def test_22_an_image_that_cannot_be_pulled():
    world = World(parallelism=5, activeDeadlineSeconds=60)
    world.settle()
    world.kubelet("p1", state="no image")
    assert codes(world) == {"Running", "WaitingForContainers"}
    assert (world.status().phase, world.counts()) == ("Unknown", (5, 0, 0, 0, 1))
    world.kubelet(*ALL, state="no image")
    world.settle()
    assert (world.status().phase, world.counts()) == ("Waiting", (5, 0, 0, 0, 5))
    world.later(60)
    assert (world.status().phase, world.counts()) == ("Failed", (5, 0, 0, 0, 5))


def test_24_nothing_but_the_injection_is_ever_written_to_a_pod():
    world = World(pods=1)
    world.settle()
    world.kubelet("p1", state=RUNS)
    world.settle()
    world.edit_pod("p1", {"spec": {"containers": [{"name": "main", "image": "web:2"}]}})
    world.settle()
    assert world.injections == [["p1"]]


def test_25_replicas_are_raised():
    world = World(replicas=3, parallelism=5)
    world.settle()
    world.change(replicas=5)
    world.settle()
    assert world.injected() == list(ALL)
    world.kubelet(*ALL, state=DONE)
    world.settle()
    world.pod("p6", age=6)
    world.change(replicas=6)
    world.settle()
    assert world.injected() == list(ALL)
    assert (world.status().phase, world.counts()) == ("Succeeded", (5, 0, 5, 0, 0))
