"""The worked examples of lifecycle and status (cloneset.md §8.4)."""

from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Patch, Plan
from tests.testkit.plans import codes
from tests.unit.cloneset.build import (
    LONG_AGO,
    NOW,
    CloneSetBuilder,
    cloneset,
    condition,
    planned,
    pod,
    progressing,
    summary,
)


def status(result: Plan) -> dict[str, Any]:
    assert result.status is not None
    return result.status.body["status"]


def settled(replicas: int) -> CloneSetBuilder:
    """Return a CloneSet whose update is complete."""
    return cloneset().replicas(replicas).stored(currentRevision="sample-new")


def fresh(name: str, *, node: str = "", **members: Any) -> Pod:
    """Return a pod as the apiserver returns it from its creation, or with a node."""
    made = pod(name, state="PreparingNormal", node=node, ready=False, phase="Pending", **members)
    return Pod(metadata=made.metadata, spec=made.spec)


def test_row_59_a_new_pod_becomes_normal_once_it_has_a_node() -> None:
    waiting = planned(settled(1), [fresh("n1")])
    assert summary(waiting) == []
    assert "WaitingForScheduling" in codes(waiting)
    scheduled = planned(settled(1), [fresh("n1", node="node-1")])
    assert summary(scheduled) == ["state n1 Normal"]
    (patch,) = scheduled.actions
    assert isinstance(patch, Patch)
    assert patch.subresource == "status"
    conditions = {item["type"]: item["status"] for item in patch.body["status"]["conditions"]}
    assert conditions == {"InPlaceUpdateReady": "True", "KruisePodReady": "True"}
    assert status(scheduled)["availableReplicas"] == 0


def test_row_60_pre_normal_hook() -> None:
    builder = settled(1).hook("preNormal").deadline(60)
    builder.stored(conditions=[condition("CloneSetUpdated", NOW - timedelta(seconds=30))])
    waiting = planned(builder, [pod("n1", state="PreparingNormal")])
    assert summary(waiting) == []
    assert "WaitingForHook" in codes(waiting)
    counts = status(waiting)
    assert (counts["readyReplicas"], counts["availableReplicas"]) == (1, 0)
    assert progressing(waiting) == "CloneSetUpdated"
    assert waiting.wake_at == NOW + timedelta(seconds=31)
    late = planned(builder, [pod("n1", state="PreparingNormal")], now=NOW + timedelta(seconds=31))
    assert progressing(late) == "ProgressDeadlineExceeded"
    hooked = planned(builder, [pod("n1", state="PreparingNormal", labels={"hold": "preNormal"})])
    assert summary(hooked) == ["state n1 Normal"]
    done = planned(builder, [pod("n1")])
    assert summary(done) == []
    assert progressing(done) == "CloneSetAvailable"


def test_row_61_a_pod_that_never_gets_a_node() -> None:
    builder = cloneset().replicas(1).deadline(60)
    builder.stored(conditions=[condition("CloneSetUpdated", NOW - timedelta(seconds=61))])
    old = pod("o1", "o", state="PreparingNormal", node="", ready=False, phase="Pending")
    result = planned(builder, [Pod(metadata=old.metadata, spec=old.spec)])
    assert progressing(result) == "ProgressDeadlineExceeded"
    assert status(result)["replicas"] == 1
    assert summary(result) == ["mark o1"]
    marked = pod(
        "o1",
        "o",
        state="PreparingNormal",
        node="",
        ready=False,
        phase="Pending",
        labels={"apps.kruise.io/specified-delete": "true"},
    )
    assert summary(planned(builder.max_unavailable(0).max_surge(0), [marked])) == ["delete o1"]


@pytest.mark.parametrize(
    ("deadline", "stored", "expected"),
    [
        pytest.param(2147483647, [], "", id="row-62-unlimited"),
        pytest.param(600, [], "CloneSetAvailable", id="row-62-appears"),
        pytest.param(2147483647, [condition("CloneSetAvailable", LONG_AGO)], "", id="row-62-removed"),
        pytest.param(None, [condition("CloneSetAvailable", LONG_AGO)], "", id="row-62-unset"),
    ],
)
def test_the_condition_needs_a_deadline(deadline: int | None, stored: list[Any], expected: str) -> None:
    builder = settled(1).stored(conditions=stored)
    if deadline is not None:
        builder.deadline(deadline)
    assert progressing(planned(builder, "1n")) == expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        pytest.param(10, "CloneSetUpdated", id="row-63-waiting"),
        pytest.param(31, "ProgressPartitionAvailable", id="row-63"),
    ],
)
def test_partition_is_ready_when_its_pods_are_available(age: int, expected: str) -> None:
    builder = cloneset().replicas(6).partition("60%").min_ready(30).deadline(600)
    since = NOW - timedelta(seconds=age)
    all_pods = [pod(f"o{i}", "o") for i in range(4)] + [pod(f"n{i}", ready_since=since) for i in range(2)]
    result = planned(builder, all_pods)
    assert progressing(result) == expected
    assert status(result)["expectedUpdatedReplicas"] == 2


def test_row_64_a_pod_that_prepares_its_deletion_is_not_available() -> None:
    builder = settled(3).hook("preDelete").deadline(600)
    builder.stored(conditions=[condition("CloneSetAvailable", LONG_AGO)])
    doomed = pod("x", state="PreparingDelete", labels={"hold": "preDelete", "apps.kruise.io/specified-delete": "true"})
    result = planned(builder, [pod("n1"), pod("n2"), doomed])
    assert progressing(result) == "CloneSetUpdated"
    assert result.urgent_status
    assert progressing(planned(builder, "3n")) == "CloneSetAvailable"


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(cloneset().replicas(6), id="row-65-scaled"),
        pytest.param(cloneset().replicas(5).partition(1), id="row-65-partition"),
    ],
)
def test_exceeded_is_sticky(builder: CloneSetBuilder) -> None:
    builder.deadline(60).stored(conditions=[condition("ProgressDeadlineExceeded", LONG_AGO, "False")])
    assert progressing(planned(builder, "4o 1n!")) == "ProgressDeadlineExceeded"


def test_row_66_nothing_is_wanted_and_nothing_is_there() -> None:
    result = planned(cloneset().replicas(0).deadline(60), "")
    assert progressing(result) == "CloneSetAvailable"
    assert status(result)["currentRevision"] == status(result)["updateRevision"] == "sample-new"


def test_leaving_a_rest_state_restarts_the_clock() -> None:
    builder = cloneset().replicas(5).deadline(60).stored(conditions=[condition("CloneSetPaused", LONG_AGO)])
    result = planned(builder, "5o")
    assert progressing(result) == "CloneSetUpdated"
    (only,) = status(result)["conditions"]
    assert only["lastUpdateTime"] == "2026-03-01T12:00:00Z"
    assert only["lastTransitionTime"] == "2026-03-01T11:00:00Z"


def test_an_unchanged_status_is_not_written() -> None:
    first = planned(settled(3).deadline(60), "3n")
    assert first.urgent_status
    stored = {name: value for name, value in status(first).items() if value is not None}
    again = planned(settled(3).deadline(60).stored(**stored), "3n")
    assert again.status is None
    assert not again.urgent_status
    counts = {**stored, "readyReplicas": 1, "conditions": []}
    on_the_way = planned(settled(3).stored(**counts), "2n 1n!")
    assert on_the_way.status is not None
    assert not on_the_way.urgent_status
    at_rest = planned(settled(3).deadline(60).stored(**{**stored, "readyReplicas": 2}), "3n")
    assert at_rest.urgent_status


def test_a_failed_condition_is_written_once_and_never_refreshed() -> None:
    """Even alone: the pass that failed for the last reason may have written everything else."""
    stored = status(planned(settled(3), "3n"))
    (first,) = status(planned(settled(3).stored(**stored), "3n", failures={"scale": "no"}))["conditions"]
    assert (first["type"], first["status"], first["message"]) == ("FailedScale", "True", "no")
    failed = {"type": "FailedScale", "status": "True", "message": "first"}
    known = settled(3).stored(**{**stored, "conditions": [failed]})
    assert planned(known, "3n", failures={"scale": "second"}).status is None
    builder = settled(3).stored(**{**stored, "readyReplicas": 0, "conditions": [failed]})
    (only,) = status(planned(builder, "3n", failures={"scale": "second"}))["conditions"]
    assert only["message"] == "first"


FAILED = [{"type": kind, "status": "True", "message": "first"} for kind in ("FailedScale", "Other")]
SEEN = {"FailedScale": ""}


@pytest.mark.parametrize(
    ("pods", "failures", "notes", "stays"),
    [
        pytest.param("3n", {}, {}, False, id="all pods are there"),
        pytest.param("2n", {}, {}, True, id="nobody knows yet whether it still fails"),
        pytest.param("2n", {}, SEEN, False, id="it did not fail again"),
        pytest.param("2n", {"scale": "again"}, SEEN, True, id="it failed again"),
        pytest.param("3n", {"scale": "again"}, {}, True, id="it failed though all pods are there"),
    ],
)
def test_a_failed_condition_does_not_stay_behind(
    pods: str, failures: dict[str, str], notes: dict[str, str], stays: bool
) -> None:
    """Readers of conditions, such as Argo CD's health checks, would report the set as degraded forever."""
    builder = settled(3).stored(readyReplicas=0, conditions=FAILED)
    kinds = [one["type"] for one in status(planned(builder, pods, failures=failures, notes=notes))["conditions"]]
    assert kinds == (["FailedScale", "Other"] if stays else ["Other"])


def test_the_end_of_a_failure_is_written_by_whom_has_seen_it() -> None:
    """Otherwise it goes with the next change. OpenKruise never removes one: a take-over would write every CloneSet."""
    known = settled(3).stored(**{**status(planned(settled(3), "3n")), "conditions": FAILED})
    assert planned(known, "3n").status is None
    failing = planned(known, "3n", failures={"scale": "no"})
    assert (failing.status, failing.notes) == (None, SEEN)
    over = planned(known, "3n", notes=failing.notes)
    assert [one["type"] for one in status(over)["conditions"]] == ["Other"]
    assert over.notes == SEEN  # the write may have to wait, or fail
    assert planned(settled(3).stored(**status(over)), "3n", notes=over.notes).notes == {}


def test_zero_counts_that_are_absent_in_json() -> None:
    body = status(planned(cloneset().replicas(1).partition(1), "1o!"))
    assert body["expectedUpdatedReplicas"] is None
    assert body["updatedAvailableReplicas"] is None
    assert body["updatedReplicas"] == 0


def test_the_selector_as_text() -> None:
    builder = settled(1)
    builder.spec["selector"]["matchExpressions"] = [{"key": "app", "operator": "In", "values": ["sample", "other"]}]
    assert status(planned(builder, "1n"))["labelSelector"] == "app=sample,app in (other,sample)"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"replicas": -1}, "InvalidReplicas", id="negative replicas"),
        pytest.param({"selector": {}}, "InvalidSelector", id="empty selector"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}, "InvalidSelector", id="operator"
        ),
        pytest.param({"scaleStrategy": {"maxUnavailable": "lots"}}, "InvalidNumber", id="scale maxUnavailable"),
        pytest.param(
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "x%", "maxSurge": "y", "partition": "5"}}},
            "InvalidNumber",
            id="percentages",
        ),
        pytest.param({"volumeClaimTemplates": [None, "x"]}, "InvalidTemplate", id="claims that are none"),
        pytest.param({"volumeClaimTemplates": [{}, {"metadata": None}]}, "WaitingForMaxUnavailable", id="empty claims"),
    ],
)
def test_bad_specs_become_reasons(change: dict[str, Any], code: str) -> None:
    builder = cloneset()
    builder.spec |= change
    assert code in codes(planned(builder, "2o 1n"))


@pytest.mark.parametrize("change", [{"replicas": -1}, {"selector": {}}, {"volumeClaimTemplates": ["x"]}], ids=str)
def test_specs_that_stop_everything_are_told_in_an_event(change: dict[str, Any]) -> None:
    builder = cloneset()
    builder.spec |= change
    (event,) = planned(builder, "2o 1n").events
    assert event.warning
    assert event.message.startswith("nothing is done: spec.")


AVAILABLE = ("True", "CloneSetAvailable", "CloneSet is available")
PROGRESSING = ("True", "CloneSetUpdated", "CloneSet is progressing")


@pytest.mark.parametrize(
    ("builder", "notation", "expected"),
    [
        pytest.param(settled(3), "3n", AVAILABLE, id="available"),
        pytest.param(settled(3).paused(), "3n", AVAILABLE, id="available and paused"),
        pytest.param(cloneset().paused(), "2o 1n", ("True", "CloneSetPaused", "CloneSet is paused"), id="paused"),
        pytest.param(
            cloneset().partition(2),
            "2o 1n",
            ("True", "ProgressPartitionAvailable", "CloneSet has been paused due to partition ready"),
            id="partition",
        ),
        pytest.param(cloneset().partition(2), "2o 1n!", PROGRESSING, id="partition, not ready"),
        pytest.param(settled(3), "4n", PROGRESSING, id="one too many"),
        pytest.param(settled(3), "2n 1n!", PROGRESSING, id="one not ready"),
        pytest.param(
            settled(3).stored(conditions=[condition("CloneSetUpdated", LONG_AGO)]),
            "2n 1n!",
            ("False", "ProgressDeadlineExceeded", "CloneSet revision sample-new has timed out progressing"),
            id="timed out",
        ),
    ],
)
def test_condition_progressing(builder: CloneSetBuilder, notation: str, expected: tuple[str, str, str]) -> None:
    conditions = status(planned(builder.deadline(600), notation))["conditions"]
    (said,) = [one for one in conditions if one["type"] == "Progressing"]
    assert (said["status"], said["reason"], said["message"]) == expected


@pytest.mark.parametrize(
    ("seconds", "reason"), [(59, "CloneSetUpdated"), (60, "CloneSetUpdated"), (61, "ProgressDeadlineExceeded")]
)
def test_the_deadline_is_over_when_more_than_its_seconds_have_passed(seconds: int, reason: str) -> None:
    stored = [condition("CloneSetUpdated", NOW - timedelta(seconds=seconds))]
    assert progressing(planned(settled(3).deadline(60).stored(conditions=stored), "2n 1n!")) == reason
