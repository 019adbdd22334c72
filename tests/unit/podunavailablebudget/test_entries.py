"""Entries of a budget's maps: which are kept, for how long, and their weight (podunavailablebudget.md §7.3)."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.planbuilder import Deadlines
from flotilla_policy.podunavailablebudget.entries import in_doubt, keep_entries
from flotilla_policy.podunavailablebudget.plan import plan
from tests.unit.podunavailablebudget.build import NOW, ago, budget, pod, pods, snapshot, terminating

A = pod("a")
NONE: list[Pod] = []
DISRUPTED, UPDATED = "disruptedPods", "unavailablePods"


@pytest.mark.parametrize(
    ("field", "seconds", "counted", "others", "asked", "kept"),
    [
        pytest.param(DISRUPTED, 1, [A], NONE, False, True, id="not yet seen to go"),
        pytest.param(DISRUPTED, 19, [A], NONE, False, True, id="a second before its end"),
        pytest.param(DISRUPTED, 20, [A], NONE, True, False, id="its end, and the pod is there"),
        pytest.param(DISRUPTED, 20, [A], NONE, False, True, id="its end, and nobody has asked"),
        pytest.param(UPDATED, 9, [A], NONE, True, True, id="an update, a second before its end"),
        pytest.param(UPDATED, 10, [A], NONE, True, False, id="an update, its end"),
        pytest.param(UPDATED, 10, [A], NONE, False, True, id="an update, and nobody has asked"),
        pytest.param(DISRUPTED, 1, NONE, [terminating("a")], False, False, id="it terminates"),
        pytest.param(DISRUPTED, 1, NONE, [pod("a", labels={})], False, False, id="no longer selected"),
        pytest.param(DISRUPTED, 1, NONE, NONE, False, True, id="a pod that is not known yet, or gone"),
        pytest.param(DISRUPTED, 20, NONE, NONE, False, True, id="not known, and nobody has asked"),
        pytest.param(DISRUPTED, 1, NONE, NONE, True, False, id="not known, and surely gone"),
        pytest.param(UPDATED, 1, NONE, NONE, True, False, id="not known, and gone before its update"),
        pytest.param(DISRUPTED, 1, [A], NONE, True, True, id="known to the apiserver"),
        pytest.param(
            DISRUPTED, 5, [pod("a", creationTimestamp=ago(2))], NONE, False, False, id="of an earlier pod of the name"
        ),
    ],
)
def test_an_entry(
    field: str, seconds: float, counted: Sequence[Pod], others: Sequence[Pod], asked: bool, kept: bool
) -> None:
    given = budget(maxUnavailable=1, status={field: {"a": ago(seconds)}})
    entries = keep_entries(
        snapshot(given, 1, counted, others, just_read=frozenset("a") if asked else frozenset()), NOW, Deadlines()
    )
    assert {**entries.disrupted, **entries.unavailable}.keys() == ({"a"} if kept else set())


def test_the_next_end_is_waited_for() -> None:
    status = {DISRUPTED: {"p-0": ago(3), "p-1": ago(18)}, UPDATED: {"p-2": ago(9), "p-3": ago(10)}}
    given = snapshot(budget(maxUnavailable=1, status=status), 4, pods(4))
    assert plan(given, NOW).wake_at == NOW + timedelta(seconds=1)


def test_a_pod_in_both_maps_is_told_of_once_its_deletion_is_over() -> None:
    status = {DISRUPTED: {"p-0": ago(15)}, UPDATED: {"p-0": ago(15)}}
    given = snapshot(budget(maxUnavailable=1, status=status), 1, pods(1), just_read=frozenset({"p-0"}))
    assert plan(given, NOW).events == ()


def test_an_entry_of_a_pod_that_is_not_known_takes_nothing_from_others() -> None:
    given = snapshot(budget(maxUnavailable=2, status={DISRUPTED: {"late": ago(1)}}), 5, pods(4))
    patch = plan(given, NOW).status
    assert patch is not None
    assert patch.body["status"]["unavailableAllowed"] == 1
    assert DISRUPTED not in patch.body["status"]


@pytest.mark.parametrize(("seconds", "kept"), [(0, True), (19, True), (20, False)])
def test_a_unit_that_was_taken_ahead_counts_until_its_end(seconds: float, kept: bool) -> None:
    """No pod has its name, and none is looked up (ADR 33)."""
    key = "ahead/abc/1"
    given = snapshot(budget(maxUnavailable=2, status={DISRUPTED: {key: ago(seconds)}}), 4, pods(4))
    assert list(in_doubt(given.budget.status, {}, NOW)) == []
    made = plan(given, NOW)
    assert made.status is not None
    assert made.status.body["status"]["unavailableAllowed"] == (1 if kept else 2)
    assert (DISRUPTED in made.status.body["status"]) is not kept  # the last entry goes, and the map with it
    assert made.wake_at == (NOW + timedelta(seconds=20 - seconds) if kept else None)
    assert made.events == ()


@pytest.mark.parametrize(("ahead", "written"), [(1, None), (3, 0), (3600, 0)])
def test_an_entry_by_a_fast_clock_gets_the_time_of_the_controller(ahead: float, written: float | None) -> None:
    """It would be kept for too long."""
    given = budget(maxUnavailable=1, status={DISRUPTED: {"p-0": ago(-ahead)}})
    made = plan(snapshot(given, 1, pods(1)), NOW)
    assert made.status is not None
    entries = made.status.body["status"].get(DISRUPTED)
    assert entries == (None if written is None else {"p-0": ago(written)})
