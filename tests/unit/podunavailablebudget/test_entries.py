"""Which entries of a budget's maps are kept, for how long, and what they count for (podunavailablebudget.md §7.3)."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.draft import Waits
from flotilla_policy.podunavailablebudget.entries import keep_entries
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
        snapshot(given, 1, counted, others, looked_at=frozenset("a") if asked else frozenset()), NOW, Waits()
    )
    assert {**entries.disrupted, **entries.unavailable}.keys() == ({"a"} if kept else set())


def test_the_next_end_is_waited_for() -> None:
    status = {DISRUPTED: {"p-0": ago(3), "p-1": ago(18)}, UPDATED: {"p-2": ago(9), "p-3": ago(10)}}
    given = snapshot(budget(maxUnavailable=1, status=status), 4, pods(4))
    assert plan(given, NOW).wake_at == NOW + timedelta(seconds=1)


def test_a_pod_in_both_maps_is_told_of_once_its_deletion_is_over() -> None:
    status = {DISRUPTED: {"p-0": ago(15)}, UPDATED: {"p-0": ago(15)}}
    given = snapshot(budget(maxUnavailable=1, status=status), 1, pods(1), looked_at=frozenset({"p-0"}))
    assert plan(given, NOW).events == ()


def test_an_entry_of_a_pod_that_is_not_known_takes_nothing_from_others() -> None:
    given = snapshot(budget(maxUnavailable=2, status={DISRUPTED: {"late": ago(1)}}), 5, pods(4))
    patch = plan(given, NOW).status
    assert patch is not None
    assert patch.body["status"]["unavailableAllowed"] == 1
    assert DISRUPTED not in patch.body["status"]
