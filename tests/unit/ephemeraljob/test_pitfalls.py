"""Pitfalls of EphemeralJobs (ephemeraljob.md §12, §6): old views, refused writes, invalid jobs."""

from datetime import timedelta

import pytest

from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Patch, PatchType, Plan
from tests.testkit.documents import Json
from tests.unit.ephemeraljob.world import BROKEN, DONE, FINALIZER, NOW, RUNS, World, container, marked


def actions(made: Plan) -> list[Patch]:
    return [one for stage in made.stages for chain in stage.chains for one in chain if isinstance(one, Patch)]


# Injection.


def test_the_whole_template_with_the_mark_of_the_job():
    given = [container("a", env=[{"name": "A", "value": "1"}], stdin=True), container("b", new={"field": [1]})]
    (patch,) = actions(World(pods=1, containers=given).plan())
    mark = {"name": "KRUISE_EJOB_ID", "value": "uid-j"}
    assert patch.body == {
        "spec": {"ephemeralContainers": [{**given[0], "env": [*given[0]["env"], mark]}, {**given[1], "env": [mark]}]}
    }
    assert (patch.patch_type, patch.subresource) == (PatchType.STRATEGIC, "ephemeralcontainers")
    assert patch.cause == "inject a, b"
    assert patch.uid.startswith("uid-p1")
    assert patch.resource_version


def test_a_template_cannot_forge_the_mark():
    forged = container(env=[{"name": "KRUISE_EJOB_ID", "value": "other"}, {"name": "A"}])
    (patch,) = actions(World(pods=1, containers=[forged]).plan())
    (written,) = patch.body["spec"]["ephemeralContainers"]
    assert written["env"] == [{"name": "A"}, {"name": "KRUISE_EJOB_ID", "value": "uid-j"}]


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(container(), id="of a user"),
        pytest.param(container(env=[{"name": "KRUISE_EJOB_ID", "value": "another"}]), id="of another job"),
        pytest.param(container(env=[{"name": "OTHER", "value": "uid-j"}]), id="another variable"),
    ],
)
def test_7_a_container_is_known_by_name_and_uid(held: Json):
    world = World(pods=1)
    world.edit_pod("p1", {"spec": {"ephemeralContainers": [held]}})
    assert {reason.code for reason in world.settle().reasons} == {"MatchedEmpty", "Conflicts"}
    assert world.injections == []


def test_a_container_of_the_job_under_another_name_is_none_of_the_template():
    world = World(pods=1)
    world.edit_pod("p1", {"spec": {"ephemeralContainers": [marked("older")]}})
    world.settle()
    assert sorted(one["name"] for one in world.pods["p1"]["spec"]["ephemeralContainers"]) == ["dbg", "older"]


def test_a_pod_of_which_nothing_was_heard_is_not_injected_again():
    world = World(pods=2)
    world.lagging = {"p1"}
    world.edit_pod("p1", {"spec": {"ephemeralContainers": [marked()]}})  # by an earlier holder of the shard
    world.reconcile()
    assert (world.conflicts, world.injections) == (1, [["p1"]])
    world.settle()
    assert (world.injected(), world.injections) == (["p1"], [["p1"]])


def test_a_container_that_a_user_has_just_put_there_is_left_alone():
    world = World(pods=1)
    world.lagging = {"p1"}
    world.edit_pod("p1", {"spec": {"ephemeralContainers": [container(image="mine")]}})
    world.settle()
    assert (world.injected(), world.counts()[0]) == ([], 0)


def test_a_namesake_of_the_pod_is_another_pod():
    world = World(pods=1)
    world.lagging = {"p1"}
    world.pod("p1", app="db")
    world.settle()
    assert (world.injected(), world.conflicts) == ([], 1)


def test_a_refusal_ends_the_pass_and_one_pod_is_tried_next():
    world = World(parallelism=5)
    world.refusals = {"p2": "targetContainerName: Not found"}
    made = world.reconcile()
    assert world.injections == [["p1"], ["p2", "p3"]]
    event = actions(made)[1].on_failure
    assert event is not None
    assert (event.warning, event.reason) == (True, "CreateFailed")
    assert event.text("no") == "failed to create ephemeral container in pod ns/p2: no"
    world.reconcile()
    assert world.injections[2:] == [["p2"]]
    assert world.status().start_time is not None
    world.refusals = {}
    world.reconcile()
    assert world.injections[3:] == [["p2"]]
    world.settle()
    assert world.injections[4:] == [["p4", "p5"]]


def test_only_so_many_in_one_pass():
    world = World(pods=200, parallelism=200)
    world.reconcile()
    assert sum(map(len, world.injections)) == 128
    world.settle()
    assert len(world.injected()) == 200


def test_what_it_costs():
    """One write for each pod; the job's status while pods come and go one after the other."""
    world = World(pods=10)
    for number in range(1, 11):
        world.settle()
        world.kubelet(f"p{number}", state=RUNS)
        world.settle()
        world.kubelet(f"p{number}", state=DONE)
    world.settle()
    assert [len(batch) for batch in world.injections] == [1] * 10
    assert world.status().phase == "Succeeded"
    assert world.statuses <= 2 * 10 + 1, "one when it starts, one when each runs, one when each is done"


# The job itself.


def test_the_finalizer_comes_before_the_first_container():
    world = World(pods=1)
    world.change(meta={"finalizers": ["mine"]})
    made = world.plan()
    assert [one.subresource for one in actions(made)] == ["", "ephemeralcontainers"]
    assert actions(made)[0].body == {"metadata": {"finalizers": ["mine", FINALIZER]}}
    world.settle()
    assert world.injected() == ["p1"]
    world.change(meta={"deletionTimestamp": "2026-03-01T12:00:00Z"})
    world.reconcile()
    assert world.jobs["j"]["metadata"]["finalizers"] == ["mine"]
    assert world.settle().stages == ()


@pytest.mark.parametrize("pods", [0, 2])
def test_a_template_without_containers(pods: int):
    world = World(pods=pods, containers=[], activeDeadlineSeconds=60)
    assert "InvalidSpec" in {reason.code for reason in world.settle().reasons}
    assert (world.status().phase, world.counts()[0], world.injections) == ("Error", pods, [])
    assert world.conditions()["JobError"] == "Error"
    assert world.status().completion_time is None
    world.later(60)
    assert (world.status().phase, world.conditions()["JobFailed"]) == ("Error", "DeadlineExceeded")
    assert world.status().completion_time is not None


def test_a_selector_that_cannot_be_read():
    world = World(selector={"matchLabels": {"-": "x"}})
    made = world.reconcile()
    ((_, problem),) = made.errors
    assert problem.startswith("matchLabels[-]: ")
    (reason,) = made.reasons
    assert (reason.code, reason.message) == ("InvalidSpec", f"the selector cannot be read: {problem}")
    assert (made.status, made.stages) == (None, ())
    world.change(meta={"deletionTimestamp": "2026-03-01T12:00:00Z"})
    world.reconcile()
    assert "j" not in world.jobs


def test_4_nothing_is_injected_when_the_deadline_strikes():
    world = World(activeDeadlineSeconds=30, parallelism=0)
    world.settle()
    start = world.status().start_time
    assert start is not None
    assert world.plan().wake_at == start + timedelta(seconds=30)
    world.change(parallelism=5)
    world.clock.time = start + timedelta(seconds=30)
    world.settle()
    assert (world.injected(), world.status().phase) == ([], "Failed")


def test_5_a_job_that_completes_while_it_is_paused():
    world = World(pods=1, ttlSecondsAfterFinished=60)
    world.settle()
    world.change(paused=True)
    world.kubelet("p1", state=DONE)
    world.settle()
    assert (world.status().phase, world.status().completion_time is not None) == ("Paused", True)
    assert world.conditions()["JobSucceeded"] == "JobSucceeded"
    world.later(60)
    assert "j" not in world.jobs


def test_an_empty_selector_matches_all():
    world = World(selector={}, parallelism=9)
    world.pod("other", age=9, app="db")
    world.settle()
    assert world.injected() == ["other", "p1", "p2", "p3", "p4", "p5"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_are_over_or_leave_are_no_targets(phase: str):
    world = World(pods=3)
    world.edit_pod("p1", {"status": {"phase": phase}})
    world.edit_pod("p2", {"metadata": {"deletionTimestamp": "2026-03-01T12:00:00Z"}})
    world.settle()
    assert (world.injected(), world.counts()[0]) == (["p3"], 1)


def test_the_older_pod_comes_first_then_the_name():
    world = World(pods=0, parallelism=2)
    for name, age in (("c", 1), ("b", 2), ("a", 2), ("d", 3)):
        world.pod(name, age=age)
    world.settle()
    assert world.injected() == ["a", "c"]


# Status.


def test_a_condition_keeps_its_times_until_it_says_something_else():
    world = World(pods=0)
    world.settle()
    first = world.status().conditions
    assert [one.type for one in first] == ["Initialized", "MatchedEmpty"]
    assert all(one.last_probe_time == one.last_transition_time == NOW.replace(microsecond=0) for one in first)
    made = world.later(100)
    assert made.status is None
    world.pod("p1")
    world.settle()
    world.vanish(POD, "p1")
    world.later(100)
    assert world.status().conditions == first
    world.pod("p2")
    world.settle()
    world.kubelet("p2", state=BROKEN)
    world.settle()
    last = world.status().conditions
    assert [(one.type, one.reason) for one in last[2:]] == [("JobFailed", "CreateFailed")]
    assert last[:2] == first
    assert last[2].message == "EphemeralJob ns/j failed to create ephemeral container"
    assert last[2].last_transition_time == world.now.replace(microsecond=0)


@pytest.mark.parametrize(
    ("world", "state", "expected"),
    [
        pytest.param(World(pods=0), "", {"MatchedEmpty": "job match no pods"}, id="no pods"),
        pytest.param(World(pods=1), DONE, {"JobSucceeded": "job success to run all tasks"}, id="succeeded"),
        pytest.param(
            World(pods=1), BROKEN, {"JobFailed": "EphemeralJob ns/j failed to create ephemeral container"}, id="failed"
        ),
        pytest.param(
            World(pods=1, activeDeadlineSeconds=0),
            "",
            {"JobFailed": "EphemeralJob ns/j was active longer than specified deadline"},
            id="too late",
        ),
        pytest.param(World(pods=1, containers=[]), "", {"JobError": "job spec invalid fields."}, id="no template"),
    ],
)
def test_messages_of_conditions(world: World, state: str, expected: dict[str, str]):
    world.settle()
    if state:
        world.kubelet("p1", state=state)
        world.settle()
    assert {one.type: one.message for one in world.status().conditions} == {"Initialized": "", **expected}


def test_a_failure_is_told_before_the_job_ends():
    world = World(parallelism=5)
    world.settle()
    world.kubelet("p1", state=BROKEN)
    world.settle()
    assert (world.status().phase, world.conditions()["JobFailed"]) == ("Unknown", "CreateFailed")
    world.kubelet("p2", "p3", "p4", "p5", state=RUNS)
    world.settle()
    assert world.status().phase == "Running"


def test_counts_that_fall_to_zero_are_written():
    world = World(pods=1)
    world.settle()
    world.kubelet("p1", state=RUNS)
    world.settle()
    world.vanish(POD, "p1")
    world.settle()
    counts = ("match", "running", "succeeded", "failed", "waiting")
    assert [world.jobs["j"]["status"][name] for name in counts] == [0] * 5


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="it starts"),
        pytest.param({"paused": True}, id="it is paused"),
        pytest.param({"activeDeadlineSeconds": 0}, id="it ends"),
    ],
)
def test_news_are_written_at_once(change: Json):
    world = World(pods=1, parallelism=0)
    if change:
        world.settle()
        world.change(**change)
    assert world.plan().urgent_status


def test_counts_may_wait():
    world = World(pods=1)
    world.settle()
    world.kubelet("p1", state=RUNS)
    made = world.plan()
    assert made.status is not None
    assert made.status.body["status"]["phase"] == "Running"
    assert not made.urgent_status
    assert made.numbers == {"match": 1, "running": 1, "succeeded": 0, "failed": 0, "waiting": 0}


def test_a_clock_that_was_set_back_does_not_end_a_job_before_its_start():
    world = World(pods=1)
    world.settle()
    world.kubelet("p1", state=DONE)
    world.later(-100)
    assert world.status().completion_time == world.status().start_time
