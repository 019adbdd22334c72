"""Units that are taken ahead, on paper (ADR 33)."""

from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import BudgetStatus
from flotilla_common.workload.budget import (
    give,
    give_back,
    held_by,
    is_any_fresh,
    is_recorded,
    most_ahead,
    status_document,
    take_ahead,
)
from tests.unit.budget.build import NOW, pod

OWN, OTHER = "ahead/one/1", "ahead/two/2"
JUST_NOW = NOW - timedelta(seconds=1)
LATE = NOW - timedelta(minutes=30)


def status(allowed: int, **members: Any) -> BudgetStatus:
    return BudgetStatus(unavailable_allowed=allowed, current_available=20, desired_available=10, **members)


@pytest.mark.parametrize(
    ("left", "held", "most"),
    [(0, 0, 0), (0, 3, 0), (4, 0, 0), (7, 0, 0), (8, 0, 1), (20, 0, 4), (13, 3, 3), (104, 0, 25)],
)
def test_how_many_a_replica_holds_at_most(left: int, held: int, most: int) -> None:
    assert most_ahead(status(left), held) == most


def test_units_that_are_taken_count() -> None:
    after = take_ahead(status(20, disrupted_pods={"a": NOW}), [OWN, OTHER], NOW + timedelta(microseconds=3))
    assert after == status(18, disrupted_pods={"a": NOW, OWN: NOW, OTHER: NOW})
    assert (after.units_ahead, after.disruptions) == (2, {"a": NOW})


@pytest.mark.parametrize("operation", ["DELETE", "EVICT", "RESIZE"])
def test_a_pod_takes_the_place_of_its_unit(operation: str) -> None:
    after = give(status(5, disrupted_pods={OWN: LATE, OTHER: LATE}), OWN, pod("a"), operation, JUST_NOW)
    assert after == status(5, disrupted_pods={OTHER: LATE, "a": JUST_NOW})


def test_a_pod_that_is_updated_takes_the_place_of_its_unit() -> None:
    after = give(status(5, disrupted_pods={OWN: LATE}), OWN, pod("a"), "UPDATE", JUST_NOW)
    assert after == status(5, unavailable_pods={"a": JUST_NOW})


def test_an_entry_is_not_older_than_its_pod() -> None:
    young = pod("a", metadata={"creationTimestamp": NOW})
    after = give(status(5, disrupted_pods={OWN: LATE}), OWN, young, "DELETE", JUST_NOW)
    assert is_recorded(after, young)


@pytest.mark.parametrize(("left", "then"), [(5, 4), (1, 0), (0, 0)])
def test_a_pod_whose_unit_is_gone_takes_another(left: int, then: int) -> None:
    after = give(status(left), OWN, pod("a"), "DELETE", JUST_NOW)
    assert after == status(then, disrupted_pods={"a": JUST_NOW})


def test_the_unit_of_a_pod_that_is_named_already_is_returned() -> None:
    """Its request came to another replica, too."""
    after = give(status(5, disrupted_pods={OWN: LATE, "a": JUST_NOW}), OWN, pod("a"), "DELETE", NOW)
    assert after == status(6, disrupted_pods={"a": JUST_NOW})
    assert give(after, OWN, pod("a"), "DELETE", NOW) == after


def test_units_that_are_returned_may_be_taken_again() -> None:
    after = give_back(status(5, disrupted_pods={OWN: NOW, OTHER: NOW, "a": NOW}), [OWN, "ahead/one/unknown"])
    assert after == status(6, disrupted_pods={OTHER: NOW, "a": NOW})


def test_the_controller_counts_what_is_returned_when_nothing_is_left() -> None:
    """A count of zero cannot express that more pods are unavailable."""
    after = give_back(status(0, disrupted_pods={OWN: NOW, OTHER: NOW}), [OWN, OTHER])
    assert after == status(0)


def test_freshness() -> None:
    assert is_any_fresh(status(0, disrupted_pods={OWN: LATE, OTHER: JUST_NOW}), 2, NOW)
    assert not is_any_fresh(status(0, disrupted_pods={OWN: LATE, "a": JUST_NOW}), 2, NOW)


def test_refusals_tell_pods_from_units() -> None:
    text = held_by(status(0, disrupted_pods={OWN: NOW, "a": NOW}))
    assert "held by a (deletion, until 2026-03-01T08:00:50Z at most)" in text
    assert text.endswith("1 of it is held by the webhook for requests that come now")
    assert "ahead/" not in text


def test_what_is_stored() -> None:
    assert status_document(take_ahead(status(20), [OWN], NOW))["disruptedPods"] == {OWN: "2026-03-01T08:00:30Z"}
