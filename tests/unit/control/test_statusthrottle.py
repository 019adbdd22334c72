"""Turns of status writes: owed ones, and counts of many objects at once."""

from itertools import pairwise

from flotilla_common.control.keystate import STATUS_INTERVAL, STATUS_LAG, STATUS_SPACING, KeyStates, StatusThrottle

NEXT_PASS = float("inf")


def test_urgent_without_writes_is_now() -> None:
    pace, states = StatusThrottle(), KeyStates[str]()
    assert pace.due(states["a"], 5.0, urgent=True, wrote=False) == 5.0
    assert not states["a"].status_owed


def test_urgent_after_writes_is_owed_until_it_is_written() -> None:
    pace, states = StatusThrottle(), KeyStates[str]()
    assert pace.due(states["a"], 5.0, urgent=True, wrote=True) == NEXT_PASS
    assert states["a"].status_owed
    assert not states["b"].status_owed
    pace.written(states["a"], 5.1)
    assert not states["a"].status_owed


def test_owed_no_more_when_the_stored_status_turns_out_to_be_right() -> None:
    pace, states = StatusThrottle(), KeyStates[str]()
    pace.due(states["a"], 5.0, urgent=True, wrote=True)
    pace.unneeded(states["a"])
    assert not states["a"].status_owed


def test_first_counts_are_now_and_the_next_ones_after_the_interval() -> None:
    pace, states = StatusThrottle(), KeyStates[str]()
    assert pace.due(states["a"], 5.0, urgent=False, wrote=True) <= 5.0
    pace.written(states["a"], 5.0)
    assert pace.due(states["a"], 5.1, urgent=False, wrote=False) == 5.0 + STATUS_INTERVAL


def test_asking_again_keeps_the_turn() -> None:
    pace, states = StatusThrottle(), KeyStates[str]()
    pace.written(states["a"], 5.0)
    turn = pace.due(states["a"], 5.1, urgent=False, wrote=False)
    assert [pace.due(states["a"], now, urgent=False, wrote=False) for now in (5.2, 5.3)] == [turn, turn]


def test_objects_take_turns() -> None:
    pace, states = StatusThrottle(), KeyStates[int]()
    turns = [pace.due(states[key], 5.0, urgent=False, wrote=False) for key in range(5)]
    assert turns[0] <= 5.0
    assert [later - earlier for earlier, later in pairwise(turns[1:])] == [STATUS_SPACING] * 3


def test_no_turn_is_later_than_the_lag() -> None:
    pace, states = StatusThrottle(), KeyStates[int]()
    turns = [pace.due(states[key], 5.0, urgent=False, wrote=False) for key in range(200)]
    assert max(turns) == 5.0 + STATUS_LAG


def test_an_urgent_write_takes_the_counts_along() -> None:
    pace, states = StatusThrottle(), KeyStates[str]()
    pace.written(states["a"], 5.0)
    before = pace.due(states["a"], 5.1, urgent=False, wrote=False)
    pace.written(states["a"], 5.2)
    after = pace.due(states["a"], 5.3, urgent=False, wrote=False)
    assert before < 5.2 + STATUS_INTERVAL <= after <= before + STATUS_INTERVAL


def test_a_later_object_of_the_name_starts_at_once() -> None:
    pace, states = StatusThrottle(), KeyStates[str]()
    pace.written(states["a"], 5.0)
    pace.due(states["a"], 5.0, urgent=True, wrote=True)
    states.forget("a")
    assert not states["a"].status_owed
    assert pace.due(states["a"], 5.1, urgent=False, wrote=False) <= 5.1


def test_a_conflict_leaves_the_object_its_turn() -> None:
    pace, states = StatusThrottle(), KeyStates[str]()
    pace.written(states["a"], 5.0)
    pace.missed(states["a"], 5.1)
    assert pace.due(states["a"], 5.2, urgent=False, wrote=False) <= 5.2
    pace.written(states["a"], 5.2)
    assert pace.due(states["a"], 5.3, urgent=False, wrote=False) == 5.2 + STATUS_INTERVAL
