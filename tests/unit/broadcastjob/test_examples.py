"""The worked examples of the specification, as rows (broadcastjob.md §8).

Those about admission are with admission; those of several passes are in test_lives.py.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from flotilla_common.api.core import Node, Pod
from flotilla_common.control.plan import Create
from tests.unit.broadcastjob.build import ago, completion, job, node, nodes, planned, pod, pods, policy, running

CORDONED = [node("n1", cordoned=True), *nodes()[1:]]
TAINTED = node("cp", taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}])
TOLERATION = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
REQUEST = {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "2"}}}]}
ALL = ["n1", "n2", "n3", "n4", "n5"]
FEW = ["n1", "n2", "n3"]  # slow start: what the first pass creates


@pytest.mark.parametrize(
    ("present", "there", "spec", "created", "desired"),
    [
        pytest.param("", [*nodes(2), TAINTED], {}, ["n1", "n2"], 2, id="1: a tainted node gets none"),
        pytest.param("1R", None, {"parallelism": 2}, ["n2"], 5, id="2: one more"),
        pytest.param("", None, {"parallelism": "40%"}, ["n1", "n2"], 5, id="3: percent"),
        pytest.param("", nodes(3), {"parallelism": "40%"}, ["n1", "n2"], 3, id="3: rounded up"),
        pytest.param("", nodes(3), {"parallelism": "40"}, ["n1", "n2"], 3, id="3: a number as text is a percentage"),
        pytest.param("", None, {"parallelism": 3}, FEW, 5, id="4: three first"),
        pytest.param("1S 2R 3R", None, {"parallelism": 3}, ["n4"], 5, id="4: one that ended lets one start"),
        pytest.param("1S 2S 3R 4R", None, {"parallelism": 3}, ["n5"], 5, id="4: the last one"),
        pytest.param("", None, {"parallelism": 0}, [], 5, id="6: nothing starts"),
        pytest.param("", None, {"parallelism": "0%"}, [], 5, id="6: no percent"),
        pytest.param("", None, {"parallelism": "some"}, [], 5, id="what is no number starts nothing"),
        pytest.param("", CORDONED, {}, ["n2", "n3", "n4"], 4, id="7: a cordoned node gets none"),
        pytest.param("2R 3R 4R 5R", None, {}, ["n1"], 5, id="8: uncordoned"),
        pytest.param("", CORDONED, {"pod": {"tolerations": [TOLERATION]}}, FEW, 5, id="10: it is tolerated"),
        pytest.param("", [node("n1", cpu="1"), *nodes()[1:]], {"pod": REQUEST}, ["n2", "n3", "n4"], 4, id="11: small"),
        pytest.param("1P", nodes(1), {"pod": REQUEST}, [], 1, id="12: full, but large enough"),
        pytest.param("1S 2F", nodes(3), policy("Continue"), ["n3"], 3, id="15: it continues"),
        pytest.param("1R 2R 3S", None, {"completionPolicy": {"type": "Never"}}, ["n4", "n5"], 5, id="26: new nodes"),
        pytest.param("1S 3S", nodes(3), {}, ["n2"], 3, id="29: a pod deleted by hand is run again"),
        pytest.param("1RT 2R", nodes(2), {}, [], 2, id="a node waits only when its pod is gone"),
    ],
)
def test_pods_that_are_created(
    present: str, there: Sequence[Node] | None, spec: dict[str, Any], created: list[str], desired: int
) -> None:
    found = planned(job(status=running(), **spec), pods(present), there)
    assert (found.created, found.plan.numbers["desired"]) == (created, desired)
    assert found.status["desired"] == desired
    assert found.status["phase"] == "running"


def test_5_less_parallelism_deletes_nothing() -> None:
    lowered = job(status=running(), parallelism=2)
    found = planned(lowered, pods("1R 2R 3R 4P"))
    assert (found.created, found.deleted) == ([], [])
    assert found.events == ["TooManyActivePods: Number of active pods exceed parallelism limit"]
    again = planned(lowered, pods("1R 2R 3R 4P"), notes=found.plan.notes)
    assert again.events == []
    assert again.reason("TooManyActivePods").startswith("waiting: 4 pods are active, more than parallelism 2")


@pytest.mark.parametrize("present", ["1R 2R", "1S 2R", "1P 2R"])
def test_9_a_pod_on_a_node_that_is_cordoned_goes(present: str) -> None:
    found = planned(job(status=running()), pods(present), [CORDONED[0], node("n2")])
    assert (found.deleted, found.plan.numbers["desired"]) == (["j-1"], 1)
    assert "SuccessfulDelete: Delete pod: j-1" in found.events
    assert found.reason("NodesExcluded") == (
        "note: no pod goes to 1 node: has the untolerated taint node.kubernetes.io/unschedulable:NoSchedule (n1)"
    )


def test_the_verdict_does_not_count_pods_that_go_first() -> None:
    there = [CORDONED[0], node("n2")]
    going = planned(job(status=running()), pods("1R 2S"), there)
    assert (going.deleted, going.status.get("phase", "running")) == (["j-1"], "running")
    over = planned(job(status=running()), pods("1RT 2S"), there)
    assert (over.status["phase"], over.status["active"], over.status["succeeded"]) == ("completed", 0, 1)


def test_a_pod_that_waits_for_a_node_that_is_gone_goes_too() -> None:
    found = planned(job(status=running()), pods("1R 2P 3R 4PT 5S"), [node("n1")])
    assert (found.deleted, found.created, found.plan.numbers["desired"]) == (["j-2"], [], 1)
    assert found.reason("Deleting") == "progressing: deleting j-2: its node does not exist any more"


def test_9_one_on_its_way_out_is_let_go() -> None:
    found = planned(job(status=running()), pods("1RT 2R"), [CORDONED[0], node("n2")])
    assert (found.deleted, found.created, found.plan.numbers["desired"]) == ([], [], 1)


@pytest.mark.parametrize(
    ("present", "killed", "counts"),
    [
        pytest.param("1S 2S 3F", [], (0, 2, 1), id="13"),
        pytest.param("1S 2F 3R", ["j-3"], (0, 1, 2), id="14"),
        pytest.param("1F 2R 3P", ["j-2", "j-3"], (0, 0, 3), id="pending ones go, too"),
        pytest.param("1F 2RT 3R", ["j-3"], (0, 0, 2), id="one on its way out is nobody's"),
    ],
)
def test_a_failed_pod_fails_the_job(present: str, killed: list[str], counts: tuple[int, int, int]) -> None:
    found = planned(job(status=running()), pods(present), nodes(3))
    assert (found.created, found.deleted) == ([], killed)
    assert (found.status["active"], found.status.get("succeeded"), found.status["failed"]) == counts
    assert (found.status["phase"], found.status["completionTime"]) == ("failed", ago(0).replace("+00:00", "Z"))
    (condition,) = found.status["conditions"]
    text = "failure policy is FailurePolicyTypeFailFast and failed pod is found"
    assert (condition["type"], condition["status"], condition["reason"]) == ("Failed", "True", "Failed")
    assert condition["message"] == text
    succeeded, before = present.count("S"), present.count("F")
    warnings = [event for event in found.events if event.startswith("failed pod is found")]
    assert warnings == [
        f"failed pod is found: {text}: {succeeded} pods succeeded, {before} pods failed",
        f"failed pod is found: {text}: {succeeded} pods succeeded, {counts[2]} pods failed",
    ]


def test_the_verdict_waits_until_all_pods_are_deleted() -> None:
    """The delete of one failed in the first pass, so no verdict was written; that of the other counts all the same."""
    first = planned(job(status=running()), pods("1F 2R 3R"), nodes(3))
    *deletes, verdict = first.plan.stages
    assert all(stage.stop_on_failure for stage in deletes)
    assert len(verdict.chains) == 1
    second = planned(job(status=running()), pods("1F 3R"), nodes(3), notes=first.plan.notes)
    assert (second.deleted, second.status["failed"]) == (["j-3"], 3)
    ended = planned(job(status=running()), pods("1F 2FT"), nodes(3), notes=second.plan.notes)
    assert (ended.deleted, ended.status["failed"]) == ([], 3)
    assert len([event for event in ended.events if event.startswith("failed")]) == 1


def test_16_it_pauses() -> None:
    one = job(status=running(), **policy("Pause"))
    found = planned(one, pods("1S 2F"), nodes(3))
    assert (found.created, found.deleted, found.status["phase"], found.status["active"]) == ([], [], "paused", 0)
    assert found.events == ["Paused: job is paused, due to failed pod"]
    paused = job(status=running(phase="paused", succeeded=1, failed=1, desired=3), **policy("Pause"))
    again = planned(paused, pods("1S 2F"), nodes(3))
    assert (again.events, again.status, again.codes[0]) == ([], {}, "PausedByFailure")


@pytest.mark.parametrize(
    ("present", "failure", "created"),
    [
        pytest.param("1S", "Pause", ["n2", "n3"], id="16: the failed pod was deleted"),
        pytest.param("1S 2F", "Continue", ["n3"], id="17: the policy is another one"),
    ],
)
def test_it_goes_on(present: str, failure: str, created: list[str]) -> None:
    one = job(status=running(phase="paused"), **policy(failure))
    found = planned(one, pods(present), nodes(3))
    assert (found.created, found.status["phase"]) == (created, "running")
    assert "Continue: continue to process job" in found.events


def test_18_paused_from_the_start() -> None:
    found = planned(job(paused=True))
    assert found.plan.stages == ()
    assert found.status == {
        "startTime": "2026-03-01T12:00:00Z",
        "active": 0,
        "succeeded": 0,
        "failed": 0,
        "desired": 5,
        "phase": "paused",
    }


def test_19_paused_while_pods_run() -> None:
    found = planned(job(status=running(), paused=True, parallelism="50%"), pods("1R 2R 3R"), nodes(10))
    assert (found.created, found.deleted) == ([], [])
    assert (found.status["phase"], found.status["active"], found.status["desired"]) == ("paused", 3, 10)


def test_20_a_deadline_passes_while_it_is_paused() -> None:
    policy = completion(activeDeadlineSeconds=10)
    found = planned(job(status=running(60, phase="paused"), paused=True, **policy), pods("1R"))
    assert (found.deleted, found.status["phase"], found.wakes_in) == ([], "paused", None)
    found = planned(job(status=running(60, phase="paused"), **policy), pods("1R"))
    assert (found.deleted, found.status["phase"]) == (["j-1"], "failed")


@pytest.mark.parametrize(
    ("began", "wakes"), [pytest.param(0, 10, id="21"), pytest.param(5, 5, id="22: every pass sets the alarm")]
)
def test_the_deadline_is_waited_for(began: float, wakes: float) -> None:
    one = job(status=running(began) if began else {}, **completion(activeDeadlineSeconds=10))
    assert planned(one, pods("1R 2R"), nodes(2)).wakes_in == wakes


def test_21_the_deadline() -> None:
    found = planned(job(status=running(10), **completion(activeDeadlineSeconds=10)), pods("1R 2R"), nodes(2))
    assert found.deleted == ["j-1", "j-2"]
    assert (found.status["phase"], found.status["active"], found.status["failed"]) == ("failed", 0, 2)
    text = "Job default/j was active longer than specified deadline"
    assert found.events[-1] == f"DeadlineExceeded: {text}: 0 pods succeeded, 2 pods failed"
    assert found.status["conditions"][0]["message"] == text


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
@pytest.mark.parametrize(
    ("ttl", "since", "deleted", "wakes"),
    [
        pytest.param(30, 5, [], 25, id="23: later"),
        pytest.param(30, 30, ["j"], None, id="23: now"),
        pytest.param(0, 0, ["j"], None, id="24: at once"),
        pytest.param(None, 10**6, [], None, id="never"),
    ],
)
def test_an_ended_job_is_deleted_in_time(
    kind: str, ttl: int | None, since: float, deleted: list[str], wakes: float | None
) -> None:
    found = planned(
        job(
            status=ended(kind, since),
            **completion("Always", **({} if ttl is None else {"ttlSecondsAfterFinished": ttl})),
        )
    )
    assert (found.deleted, found.created, found.status, found.wakes_in) == (deleted, [], {}, wakes)


@pytest.mark.parametrize(
    ("present", "there"),
    [
        pytest.param("1S 2S 3S 4S 5S", nodes(6), id="27: a node joins"),
        pytest.param("1S", nodes(2), id="28: one is deleted"),
    ],
)
def test_a_completed_job_rests(present: str, there: list[Node]) -> None:
    found = planned(job(status=ended("Complete", 60, succeeded=5)), pods(present), there)
    assert (found.plan.stages, found.status) == ((), {})


def test_30_never_and_a_failed_pod() -> None:
    found = planned(job(status=running(), **completion("Never")), pods("1F 2R"))
    assert (found.deleted, found.status["phase"]) == (["j-2"], "failed")
    stored = running(phase="failed", conditions=found.status["conditions"])
    later = planned(job(status=stored, **completion("Never")), pods("1F"), nodes(6))
    assert (later.created, later.deleted, later.status["phase"]) == ([], [], "failed")
    assert "conditions" not in later.status


@pytest.mark.parametrize(
    ("restart_policy", "restarts", "limit", "failed"),
    [
        pytest.param("OnFailure", 1, 0, 1, id="31: the first restart is too many"),
        pytest.param("OnFailure", 0, 0, 0, id="none yet"),
        pytest.param("OnFailure", 3, 3, 0, id="as many as allowed"),
        pytest.param("OnFailure", 4, 3, 1, id="32: one more"),
        pytest.param("Never", 9, 0, 0, id="Never knows no limit"),
    ],
)
def test_restarts(restart_policy: str, restarts: int, limit: int, failed: int) -> None:
    present = [pod(1, "R", restarts=restarts, restartPolicy=restart_policy), *pods("2R")]
    found = planned(job(status=running(), **policy("Continue", limit)), present, nodes(2))
    assert (found.status.get("failed"), found.status["active"]) == (failed, 2 - failed)


def test_31_the_restarting_pod_is_left() -> None:
    present: list[Pod] = [pod(1, "R", restarts=1, restartPolicy="OnFailure"), *pods("2R")]
    found = planned(job(status=running()), present, nodes(2))
    assert (found.deleted, found.status["failed"], found.status["phase"]) == (["j-2"], 2, "failed")


def test_32_while_it_runs_the_job_is_not_complete() -> None:
    present = [pod(1, "R", restarts=4, restartPolicy="OnFailure"), *pods("2S")]
    one = job(status=running(), **policy("Continue", 3))
    assert planned(one, present, nodes(2)).status["phase"] == "running"
    present[0] = pod(1, "S", restarts=4, restartPolicy="OnFailure")
    done = planned(one, present, nodes(2)).status
    assert (done["phase"], done["succeeded"], done["failed"]) == ("completed", 2, 0)


def test_33_no_node_fits_but_the_deadline_works() -> None:
    one = job(status=running(10), **completion(activeDeadlineSeconds=10))
    assert planned(one, (), []).status["phase"] == "failed"
    waiting = planned(job(status=running(10)), (), [])
    assert (waiting.status, waiting.created, waiting.codes) == ({}, [], ["NoNodes"])


def test_37_after_a_refusal_one_is_tried() -> None:
    refused = planned(job(status=running()), pods("1R 2R"), failures={"create": "exceeded quota"})
    assert refused.created == ["n3"]
    assert refused.status["active"] == 2


def test_38_a_new_template_is_for_later_pods() -> None:
    container = {"name": "main", "image": "busybox:2"}
    found = planned(job(status=running(), pod={"containers": [container]}), pods("1R"), nodes(2))
    (create,) = (action for action in found.actions if isinstance(action, Create))
    assert (create.body["spec"]["containers"], found.deleted) == ([container], [])


def test_39_a_job_that_is_deleted_creates_nothing() -> None:
    found = planned(job(meta={"deletionTimestamp": ago(1)}, status=running()), pods("1R"))
    assert (found.plan.stages, found.plan.status, found.codes) == ((), None, ["Terminating"])


def test_40_the_same_view_plans_the_same_names() -> None:
    first, second = planned(job()), planned(job())
    assert [action.name for action in first.actions] == [action.name for action in second.actions]


@pytest.mark.parametrize(
    ("present", "message"),
    [
        pytest.param("1S 2S 3S", "Job completed, 3 pods succeeded, 0 pods failed", id="1"),
        pytest.param("1S 2S 3F", "Job completed, 2 pods succeeded, 1 pods failed", id="15: Complete in the end"),
        pytest.param("1S 2S 3RT", "Job completed, 2 pods succeeded, 0 pods failed", id="the last is on its way out"),
    ],
)
def test_the_end(present: str, message: str) -> None:
    found = planned(job(status=running(), **policy("Continue")), pods(present), nodes(3))
    (condition,) = found.status["conditions"]
    assert (condition["type"], condition["reason"], condition["message"]) == ("Complete", "Complete", message)
    assert (found.status["phase"], found.status["completionTime"]) == ("completed", "2026-03-01T12:00:00Z")
    counted = message.removeprefix("Job completed, ")
    assert f"JobComplete: Job default/j is completed, {counted}" in found.events


def ended(kind: str, since: float, **status: Any) -> dict[str, Any]:
    phase = {"Complete": "completed", "Failed": "failed"}[kind]
    condition = {"type": kind, "status": "True", "reason": kind, "message": "told before"}
    return {
        "startTime": ago(since + 9),
        "completionTime": ago(since),
        "phase": phase,
        "conditions": [condition],
        **status,
    }


@pytest.mark.parametrize("seconds", [10**12, 2**63 - 1])
def test_a_deadline_beyond_the_calendar_never_comes(seconds: int) -> None:
    found = planned(job(status=running(60), **completion(activeDeadlineSeconds=seconds)), pods("1R"), nodes(2))
    assert found.deleted == []
    assert found.status["phase"] == "running"
