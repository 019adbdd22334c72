"""Taking budget (podunavailablebudget.md §8.6 and §8.7)."""

from datetime import datetime, timedelta

import msgspec
import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import BudgetStatus
from flotilla_common.workload.budget import (
    Refusal,
    changes_of,
    has_taken,
    held_by,
    is_recorded,
    status_document,
    take,
    without_entry,
)
from tests.unit.budget.build import LONG_AGO, NOW, pod

STATUS = BudgetStatus(unavailable_allowed=1, current_available=3, desired_available=2, total_replicas=3)
A_MOMENT = timedelta(seconds=1)


def with_status(**members: object) -> BudgetStatus:
    return msgspec.structs.replace(STATUS, **members)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("DELETE", {"unavailableAllowed": 0, "disruptedPods": {"a": "2026-03-01T08:00:30Z"}}),
        ("EVICT", {"unavailableAllowed": 0, "disruptedPods": {"a": "2026-03-01T08:00:30Z"}}),
        ("RESIZE", {"unavailableAllowed": 0, "disruptedPods": {"a": "2026-03-01T08:00:30Z"}}),
        ("UPDATE", {"unavailableAllowed": 0, "unavailablePods": {"a": "2026-03-01T08:00:30Z"}}),
    ],
)
def test_take(operation: str, expected: dict[str, object]) -> None:
    taken = take(STATUS, pod(), operation, NOW + timedelta(milliseconds=700))
    assert isinstance(taken, BudgetStatus)
    assert changes_of(STATUS, taken) == expected
    assert is_recorded(taken, pod())


def test_a_taken_unit_is_not_there_for_others() -> None:
    taken = take(STATUS, pod(), "DELETE", NOW)
    assert isinstance(taken, BudgetStatus)
    refused = take(taken, pod("b"), "EVICT", NOW)
    assert refused == Refusal(
        "pub unavailable allowed is negative: 3 of 3 pods are available and 2 must be;"
        " the budget is held by a (deletion, until 2026-03-01T08:00:50Z at most)"
    )


@pytest.mark.parametrize("allowed", [0, -3])
def test_nothing_left(allowed: int) -> None:
    status = BudgetStatus(unavailable_allowed=allowed, current_available=3, desired_available=3, total_replicas=3)
    refused = take(status, pod(), "DELETE", NOW)
    assert refused == Refusal("pub unavailable allowed is negative: 3 of 3 pods are available and 3 must be")


@pytest.mark.parametrize(("entries", "refused"), [(2000, False), (2001, True)])
def test_full_maps(entries: int, refused: bool) -> None:
    names = [f"pod-{number}" for number in range(entries)]
    status = with_status(
        disrupted_pods=dict.fromkeys(names[:1000], NOW), unavailable_pods=dict.fromkeys(names[1000:], NOW)
    )
    answer = take(status, pod(), "DELETE", NOW)
    assert isinstance(answer, Refusal) is refused
    if isinstance(answer, Refusal):
        assert answer.message == (
            "DisruptedPods and UnavailablePods map too big: 2001 entries are not confirmed by the controller yet"
        )
        assert not answer.exhausted


def test_by_a_clock_that_is_behind_the_entry_is_still_about_the_pod() -> None:
    newcomer = pod(metadata={"creationTimestamp": NOW + timedelta(seconds=5)}, status={"conditions": []})
    taken = take(STATUS, newcomer, "DELETE", NOW)
    assert isinstance(taken, BudgetStatus)
    assert is_recorded(taken, newcomer)


def ready_at(moment: datetime) -> dict[str, object]:
    return {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": moment}]}


@pytest.mark.parametrize(
    ("entry", "ready", "recorded", "certain"),
    [
        (NOW + A_MOMENT, NOW + 9 * A_MOMENT, True, True),
        (NOW, NOW, True, True),
        (NOW, NOW + A_MOMENT, True, False),
        (NOW - A_MOMENT, NOW, False, False),
    ],
    ids=["after it was made", "made, ready and taken in one second", "made in the second of the other's end", "before"],
)
def test_an_entry_is_about_the_pod_that_was_there(
    entry: datetime, ready: datetime, recorded: bool, certain: bool
) -> None:
    made = pod(metadata={"creationTimestamp": NOW}, status=ready_at(ready))
    for status in (BudgetStatus(disrupted_pods={"a": entry}), BudgetStatus(unavailable_pods={"a": entry})):
        assert (is_recorded(status, made), has_taken(status, made)) == (recorded, certain)


def test_holders_are_named_by_when_they_end() -> None:
    status = with_status(
        disrupted_pods={f"d{number}": NOW + number * A_MOMENT for number in range(4)},
        unavailable_pods={"u": NOW, "v": NOW + 100 * A_MOMENT},
    )
    assert held_by(status).endswith(
        "the budget is held by u (update, until 2026-03-01T08:00:40Z at most),"
        " d0 (deletion, until 2026-03-01T08:00:50Z at most), d1 (deletion, until 2026-03-01T08:00:51Z at most),"
        " d2 (deletion, until 2026-03-01T08:00:52Z at most), d3 (deletion, until 2026-03-01T08:00:53Z at most)"
        " and 1 more"
    )


def test_what_is_given_back_is_left_to_the_controller_to_count() -> None:
    for operation in ("DELETE", "UPDATE"):
        taken = take(STATUS, pod(), operation, NOW)
        assert isinstance(taken, BudgetStatus)
        kept = without_entry(taken, pod(), operation)
        assert status_document(kept) == status_document(STATUS) | {"unavailableAllowed": 0}


def test_the_numbers_are_stored_also_where_they_are_zero() -> None:
    zeros = {"unavailableAllowed": 0, "currentAvailable": 0, "desiredAvailable": 0, "totalReplicas": 0}
    assert status_document(BudgetStatus()) == zeros
    held = BudgetStatus(disrupted_pods={"a": LONG_AGO}, observed_generation=2)
    assert status_document(held) == zeros | {"observedGeneration": 2, "disruptedPods": {"a": "2026-03-01T07:00:30Z"}}
