"""Turns of status writes: owed ones, and counts of many objects at once."""

from itertools import pairwise

from flotilla_common.control.statusthrottle import INTERVAL, LAG, SPACING, StatusThrottle

NEXT_PASS = float("inf")


def test_urgent_without_writes_is_now() -> None:
    pace = StatusThrottle[str]()
    assert pace.due("a", 5.0, urgent=True, wrote=False) == 5.0
    assert not pace.owed("a")


def test_urgent_after_writes_is_owed_until_it_is_written() -> None:
    pace = StatusThrottle[str]()
    assert pace.due("a", 5.0, urgent=True, wrote=True) == NEXT_PASS
    assert pace.owed("a")
    assert not pace.owed("b")
    pace.written("a", 5.1)
    assert not pace.owed("a")


def test_owed_no_more_when_the_stored_status_turns_out_to_be_right() -> None:
    pace = StatusThrottle[str]()
    pace.due("a", 5.0, urgent=True, wrote=True)
    pace.unneeded("a")
    assert not pace.owed("a")


def test_first_counts_are_now_and_the_next_ones_after_the_interval() -> None:
    pace = StatusThrottle[str]()
    assert pace.due("a", 5.0, urgent=False, wrote=True) <= 5.0
    pace.written("a", 5.0)
    assert pace.due("a", 5.1, urgent=False, wrote=False) == 5.0 + INTERVAL


def test_asking_again_keeps_the_turn() -> None:
    pace = StatusThrottle[str]()
    pace.written("a", 5.0)
    turn = pace.due("a", 5.1, urgent=False, wrote=False)
    assert [pace.due("a", now, urgent=False, wrote=False) for now in (5.2, 5.3)] == [turn, turn]


def test_objects_take_turns() -> None:
    pace = StatusThrottle[int]()
    turns = [pace.due(key, 5.0, urgent=False, wrote=False) for key in range(5)]
    assert turns[0] <= 5.0
    assert [later - earlier for earlier, later in pairwise(turns[1:])] == [SPACING] * 3


def test_no_turn_is_later_than_the_lag() -> None:
    pace = StatusThrottle[int]()
    turns = [pace.due(key, 5.0, urgent=False, wrote=False) for key in range(200)]
    assert max(turns) == 5.0 + LAG


def test_an_urgent_write_takes_the_counts_along() -> None:
    pace = StatusThrottle[str]()
    pace.written("a", 5.0)
    before = pace.due("a", 5.1, urgent=False, wrote=False)
    pace.written("a", 5.2)
    assert before < 5.2 + INTERVAL <= pace.due("a", 5.3, urgent=False, wrote=False) <= before + INTERVAL


def test_a_namesake_starts_anew() -> None:
    pace = StatusThrottle[str]()
    pace.written("a", 5.0)
    pace.due("a", 5.0, urgent=True, wrote=True)
    pace.forget("a")
    assert not pace.owed("a")
    assert pace.due("a", 5.1, urgent=False, wrote=False) <= 5.1


def test_a_conflict_leaves_the_object_its_turn() -> None:
    pace = StatusThrottle[str]()
    pace.written("a", 5.0)
    pace.missed("a", 5.1)
    assert pace.due("a", 5.2, urgent=False, wrote=False) <= 5.2
    pace.written("a", 5.2)
    assert pace.due("a", 5.3, urgent=False, wrote=False) == 5.2 + INTERVAL
