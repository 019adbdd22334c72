"""The contents and times of status writes, and the reasons of a stopped rollout (sidecarset.md §7.5)."""

from typing import Any

import pytest

from flotilla_common.control.plan import Plan
from tests.testkit.plans import codes
from tests.unit.sidecarset.build import Builder, planned, pods, revision, side, updated

REVISION = revision(side("B"), 1).metadata.name
OBSERVED = {"observedGeneration": 3, "latestRevision": REVISION, "collisionCount": 0}


def told(result: Plan, code: str) -> str:
    (message,) = [f"{reason.state}: {reason.message}" for reason in result.reasons if reason.code == code]
    return message


def named(result: Plan, code: str) -> tuple[str, ...]:
    (objects,) = [reason.objects for reason in result.reasons if reason.code == code]
    return objects


def test_the_first_status() -> None:
    patch = planned(side("B"), "A B B! B~").status
    assert patch is not None
    assert patch.body["status"] == OBSERVED | {
        "matchedPods": 4,
        "updatedPods": 3,
        "readyPods": 2,
        "updatedReadyPods": 1,
    }
    assert (patch.subresource, patch.resource_version, patch.uid) == ("status", "77", "uid-side")


def test_counts_that_are_required_are_there_at_zero() -> None:
    patch = planned(side("B"), []).status
    assert patch is not None
    assert patch.body["status"] == OBSERVED | {
        "matchedPods": 0,
        "updatedPods": 0,
        "readyPods": 0,
        "updatedReadyPods": None,
    }


FULL = OBSERVED | {"matchedPods": 2, "updatedPods": 2, "readyPods": 2, "updatedReadyPods": 2}


@pytest.mark.parametrize(
    ("stored", "there", "written", "urgent"),
    [
        pytest.param({}, "Bx2", False, False, id="nothing has changed"),
        pytest.param({"observedGeneration": 9}, "Bx2", False, False, id="somebody has seen a newer one"),
        pytest.param({"observedGeneration": 2}, "Bx2", True, True, id="a new spec"),
        pytest.param({"latestRevision": "x"}, "Bx2", True, True, id="a new revision"),
        pytest.param({"collisionCount": None}, "Bx2", True, True, id="no count of collisions yet"),
        pytest.param({}, "Bx3", True, True, id="counts, which will stay"),
        pytest.param({}, "B B!", True, False, id="counts, in the middle"),
    ],
)
def test_when_it_is_written(stored: dict[str, Any], there: str, written: bool, urgent: bool) -> None:
    result = planned(side("B").stored(**FULL | stored), there)
    assert (result.status is not None, result.urgent_status) == (written, urgent)


@pytest.mark.parametrize("strategy", [{"paused": True}, {"type": "NotUpdate"}])
def test_it_is_written_whether_pods_are_updated_or_not(strategy: dict[str, Any]) -> None:
    assert planned(side("B").strategy(**strategy), "A").status is not None


REASONS = [
    pytest.param(side(), "", {"NoPods"}, id="no pods"),
    pytest.param(side(), "Bx2", {"Complete"}, id="complete"),
    pytest.param(side(), "B B!", {"WaitingForAvailability", "NotReady"}, id="all updated, one not ready"),
    pytest.param(side(), "A", {"Updating"}, id="the last one"),
    pytest.param(side(), "Ax2", {"Updating", "WaitingForMaxUnavailable"}, id="one of two"),
    pytest.param(side().m(0), "A", {"WaitingForMaxUnavailable"}, id="no room at all"),
    pytest.param(side().p(2), "A A B", {"PartitionReached"}, id="partition"),
    pytest.param(side().p(1), "Ax3", {"Updating", "WaitingForMaxUnavailable"}, id="before the partition"),
    pytest.param(side().strategy(paused=True), "A", {"PausedByUser"}, id="paused"),
    pytest.param(side().strategy(paused=True), "B", {"Complete"}, id="paused, but nothing is to be done"),
    pytest.param(side().strategy(type="NotUpdate"), "A", {"NotUpdate"}, id="NotUpdate"),
    pytest.param(side().strategy(type="NotUpdate"), "B", {"Complete"}, id="NotUpdate, but all are updated"),
    pytest.param(side().strategy(type="Other"), "A", {"Updating"}, id="any other type"),
    pytest.param(side(), "A?", {"NotUpgradable"}, id="more than images"),
    pytest.param(side().strategy(selector={"matchLabels": {"no": "one"}}), "A", {"NotSelected"}, id="not chosen"),
    pytest.param(side().m("x%"), "A", {"Updating", "InvalidNumber"}, id="maxUnavailable cannot be read"),
    pytest.param(side().p("5"), "A", {"PartitionReached", "InvalidNumber"}, id="partition cannot be read"),
    pytest.param(side().set(selector={}), "A", {"InvalidSpec"}, id="empty selector"),
    pytest.param(side().meta(deletionTimestamp="2026-03-01T12:00:00Z"), "A", {"Terminating"}, id="being deleted"),
]


@pytest.mark.parametrize(("builder", "there", "expected"), REASONS)
def test_reasons(builder: Builder, there: str, expected: set[str]) -> None:
    assert codes(planned(builder, there)) == expected


def test_who_uses_max_unavailable_up() -> None:
    result = planned(side().m(2), "B! Ax3")
    assert told(result, "WaitingForMaxUnavailable") == "waiting: maxUnavailable 2 is used by p03, p00"
    assert named(result, "WaitingForMaxUnavailable") == ("p03", "p00")
    assert updated(result) == ["p03"]
    assert told(planned(side().m(0), "A"), "WaitingForMaxUnavailable") == "stuck: maxUnavailable 0 leaves no room"


def test_who_waits_for_what() -> None:
    assert told(planned(side(), "A?x7"), "NotUpgradable") == (
        "stuck: more than images has changed: p00, p01, p02, p03, p04 and 2 more keep their sidecars until "
        "they are recreated"
    )
    assert told(planned(side(), "B B~"), "WaitingForAvailability") == "waiting: 2 of 2 pods updated; not ready yet: p01"
    assert told(planned(side().p(1), "A B"), "PartitionReached") == (
        "held: 1 of 2 pods updated, partition 1 keeps 1 pod on older sidecars"
    )


def test_numbers() -> None:
    assert planned(side().p("50%").m("30%"), "B B! A A?").numbers == {
        "matched": 4,
        "updated": 2,
        "ready": 3,
        "updatedReady": 1,
        "partition": 2,
        "maxUnavailable": 2,
        "notUpgradable": 1,
        "busy": 0,
        "unavailable": 1,
    }


@pytest.mark.parametrize(
    ("builder", "there", "settled"),
    [
        (side(), "Bx2", True),
        (side(), "B B!", True),
        (side(), "A", False),
        (side("B").strategy(paused=True), "A", False),
    ],
)
def test_when_nothing_hangs_on_pods_becoming_ready(builder: Builder, there: str, settled: bool) -> None:
    assert planned(builder, pods(there)).settled is settled


def test_one_that_is_being_deleted_writes_nothing() -> None:
    result = planned(side().meta(deletionTimestamp="2026-03-01T12:00:00Z"), "A", revisions=[])
    assert (result.stages, result.status) == ((), None)
