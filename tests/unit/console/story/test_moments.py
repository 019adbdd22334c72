"""The time axis: pauses, the line of unavailable pods, and handovers."""

import pytest

from flotilla_console.blocks.types import Gap, Point
from flotilla_console.story.moments import MOST_PODS, allowed, gaps, handovers, unavailable
from tests.unit.console.story.records_of_rollouts import at, decision, write

ZERO = at(0).timestamp()


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ([], [Gap(2, 98)]),
        ([10, 20, 40, 70], []),
        ([10, 60, 90], [Gap(12, 58)]),
        ([-50, 150, 50, 50], [Gap(2, 48), Gap(52, 98)]),
    ],
)
def test_pauses_are_between_moments(moments: list[float], expected: list[Gap]) -> None:
    assert list(gaps(moments, 0, 100)) == expected


def test_a_moment_alone_has_no_pause() -> None:
    assert gaps([5], 5, 5) == ()


def test_the_line_has_a_point_where_the_number_changes() -> None:
    made = [
        decision(1, replicas=6, available=6, maxUnavailable=2),
        decision(10, replicas=6, available=4, maxUnavailable=2),
        decision(11, replicas=6, available=4, maxUnavailable=3),
        decision(12, replicas=6, available=9, maxUnavailable=3),
        decision(99, replicas=6, available=0),
        decision(13),
    ]
    assert unavailable(made, ZERO + 5, ZERO + 50) == (
        Point(ZERO + 5, 0),
        Point(ZERO + 10, 2),
        Point(ZERO + 12, 0),
    )
    assert allowed(made, ZERO + 5, ZERO + 50) == (Point(ZERO + 5, 2), Point(ZERO + 11, 3))


def test_impossible_numbers_are_limited() -> None:
    (point,) = unavailable([decision(1, replicas=10**30, available=0)], ZERO, ZERO + 5)
    assert point.value == MOST_PODS


def test_a_restarted_service_is_marked_once_and_late_records_of_the_old_replica_are_not() -> None:
    decisions = [decision(1), decision(20, replica="r2"), decision(25, replica="r2")]
    writes = [write(2, "web-1"), write(21, "web-2"), write(22, "web-3", replica="r2"), write(23, "x", service="jobs")]
    (tick,) = handovers(decisions, writes, "cloneset")
    assert (tick.at, tick.detail) == (ZERO + 20, "replica r1 → r2")
