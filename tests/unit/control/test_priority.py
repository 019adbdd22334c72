"""Started work continues, and idle keys get their few slots."""

from flotilla_common.control.priority import IN_PROGRESS_SECONDS, SLOT_SECONDS, SLOW_START_SLOTS, PriorityOrder


def order(*keys: str, slots: int = 1) -> PriorityOrder[str]:
    made = PriorityOrder[str](slots)
    for key in keys:
        made.add(key, 0.0)
    return made


def test_idle_keys_are_begun_in_order_as_far_as_there_are_slots() -> None:
    ready = order("a", "b", "c", slots=2)
    assert [ready.take(0.0), ready.take(0.0), ready.take(0.0)] == ["a", "b", None]
    assert "c" in ready
    assert len(ready) == 1


def test_a_slot_is_free_again_when_its_key_is_done() -> None:
    ready = order("a", "b")
    ready.take(0.0)
    assert ready.next_free(0.5) == SLOT_SECONDS
    ready.done("a", 0.5)
    assert ready.next_free(0.5) == 0.5
    assert ready.take(0.5) == "b"


def test_a_returning_key_goes_before_idle_ones_without_a_slot() -> None:
    ready = order("a", "b", "c")
    ready.take(0.0)
    ready.done("a", 0.1)
    assert ready.take(0.1) == "b"
    ready.add("a", 0.2)
    assert ready.take(0.2) == "a"
    assert ready.take(0.2) is None


def test_a_returning_key_takes_no_place() -> None:
    ready = order("a", "b")
    ready.take(0.0)
    ready.done("a", 0.1)
    ready.take(0.1)
    ready.add("a", 0.2)
    assert ready.next_free(0.2) == 0.2
    ready.take(0.2)
    ready.add("c", 0.2)
    ready.done("a", 0.3)
    assert ready.next_free(0.3) == 0.1 + SLOT_SECONDS


def test_a_key_that_rested_is_idle_again() -> None:
    ready = order("a", "b")
    ready.take(0.0)
    ready.done("a", 0.0)
    ready.take(0.0)
    ready.add("a", IN_PROGRESS_SECONDS)
    assert ready.take(1.0) is None


def test_a_slow_pass_gives_its_place_up() -> None:
    ready = order("slow", "next")
    ready.take(0.0)
    assert ready.take(SLOT_SECONDS / 2) is None
    assert ready.next_free(SLOT_SECONDS / 2) == SLOT_SECONDS
    assert ready.take(SLOT_SECONDS) == "next"


def test_a_slow_pass_takes_more_slots_than_one() -> None:
    ready = order("a", "b", "c", "d", "e", slots=2 * SLOW_START_SLOTS)
    for key in ("a", "b"):
        assert ready.take(0.0) == key
        ready.mark_slow_start(key, slow=True)
    assert ready.take(0.5) is None
    assert ready.next_free(0.5) == SLOT_SECONDS
    ready.mark_slow_start("a", slow=False)
    ready.done("a", 0.5)
    assert [ready.take(0.5) for _ in range(3)] == ["c", "d", None]
    assert ready.next_free(0.5) == SLOT_SECONDS, "of b, which gives up two at once"


def test_a_slow_key_keeps_its_slots_from_pass_to_pass_until_one_is_quick() -> None:
    ready = order("a", "b", slots=SLOW_START_SLOTS)
    ready.take(0.0)
    ready.mark_slow_start("a", slow=True)
    ready.done("a", 0.5)
    assert ready.take(0.5) is None
    ready.add("a", 0.5)
    assert ready.take(0.5) == "a"
    ready.mark_slow_start("a", slow=False)
    ready.done("a", 1.0)
    assert ready.take(1.0) == "b"


def test_a_slow_key_that_does_not_come_back_gives_its_slots_up() -> None:
    ready = order("a", "b", slots=SLOW_START_SLOTS)
    ready.take(0.0)
    ready.mark_slow_start("a", slow=True)
    ready.done("a", 0.5)
    assert ready.next_free(1.0) == 0.5 + SLOT_SECONDS
    assert ready.take(0.5 + SLOT_SECONDS) == "b"


def test_a_slow_key_whose_object_is_gone_gives_its_slots_up() -> None:
    ready = order("a", "b", slots=SLOW_START_SLOTS)
    ready.take(0.0)
    ready.mark_slow_start("a", slow=True)
    ready.forget("a")
    ready.done("a", 0.5)
    assert ready.take(0.5) == "b"


def test_a_returning_key_takes_no_place_however_slow_it_is() -> None:
    ready = order("a", slots=2)
    ready.take(0.0)
    ready.done("a", 0.0)
    ready.add("a", 0.1)
    ready.take(0.1)
    ready.mark_slow_start("a", slow=True)
    ready.add("b", 0.1)
    ready.add("c", 0.1)
    assert [ready.take(0.1), ready.take(0.1)] == ["b", "c"]


def test_nothing_is_free_when_nothing_is_ready() -> None:
    assert order().next_free(0.0) is None


def test_a_key_is_ready_once() -> None:
    ready = order("a", "a")
    assert len(ready) == 1
    assert ready.take(0.0) == "a"
    assert ready.take(0.0) is None


def test_a_namesake_begins_anew() -> None:
    ready = order("a", "b")
    ready.take(0.0)
    ready.done("a", 0.0)
    assert ready.take(0.1) == "b"
    ready.add("a", 0.1)
    assert ready.take(0.1) == "a", "it returned"
    ready.forget("a")
    ready.done("a", 0.2)
    ready.add("a", 0.3)
    assert ready.take(0.3) is None, "it is idle, and the one place is taken"


def test_a_namesake_returns_like_any_other() -> None:
    ready = order("a", "b", slots=1)
    ready.take(0.0)
    ready.forget("a")
    ready.done("a", 0.0)
    ready.add("a", 0.1)
    ready.take(0.1)
    ready.done("b", 0.2)
    assert ready.take(0.2) == "a"
    ready.done("a", 0.3)
    ready.add("c", 0.4)
    ready.add("a", 0.4)
    assert [ready.take(0.4), ready.take(0.4)] == ["c", "a"], "neither waits for the other's place"


def test_both_lanes_are_counted() -> None:
    ready = order("a", "b", slots=2)
    ready.take(0.0)
    ready.done("a", 0.1)
    ready.add("a", 0.2)
    assert len(ready) == 2


def test_a_key_returns_for_so_long_after_it_was_done_last() -> None:
    ready = order("a")
    ready.take(0.0)
    ready.done("a", 0.0)
    ready.add("b", 1.0)
    ready.take(1.0)
    ready.done("b", 1.0)
    ready.done("a", 2.0)
    ready.done("b", IN_PROGRESS_SECONDS)
    ready.add("a", IN_PROGRESS_SECONDS + 1.0)
    ready.add("c", IN_PROGRESS_SECONDS + 1.0)
    assert ready.next_free(IN_PROGRESS_SECONDS + 1.0) == IN_PROGRESS_SECONDS + 1.0
    assert [ready.take(IN_PROGRESS_SECONDS + 1.0) for _ in range(3)] == ["c", "a", None]


def test_slots_that_were_given_up_are_not_taken_twice_as_many_the_next_time() -> None:
    ready = order("a", "b", slots=SLOW_START_SLOTS)
    ready.take(0.0)
    ready.mark_slow_start("a", slow=True)
    ready.done("a", 0.0)
    ready.take(SLOT_SECONDS)
    ready.done("b", SLOT_SECONDS)
    later = SLOT_SECONDS + IN_PROGRESS_SECONDS
    ready.add("a", later)
    ready.add("c", later)
    assert [ready.take(later), ready.take(later)] == ["a", "c"]
