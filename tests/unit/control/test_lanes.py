"""What is begun gets on, and idle keys get their few places."""

from flotilla_common.control.lanes import BEGINNING, RETURNING, SLOW_PLACES, Lanes


def lanes(*keys: str, places: int = 1) -> Lanes[str]:
    made = Lanes[str](places)
    for key in keys:
        made.add(key, 0.0)
    return made


def test_idle_keys_are_begun_in_order_as_far_as_there_are_places() -> None:
    ready = lanes("a", "b", "c", places=2)
    assert [ready.take(0.0), ready.take(0.0), ready.take(0.0)] == ["a", "b", None]
    assert "c" in ready
    assert len(ready) == 1


def test_a_place_is_free_again_when_its_key_is_done() -> None:
    ready = lanes("a", "b")
    ready.take(0.0)
    assert ready.next_free(0.5) == BEGINNING
    ready.done("a", 0.5)
    assert ready.next_free(0.5) == 0.5
    assert ready.take(0.5) == "b"


def test_a_returning_key_goes_before_idle_ones_without_a_place() -> None:
    ready = lanes("a", "b", "c")
    ready.take(0.0)
    ready.done("a", 0.1)
    assert ready.take(0.1) == "b"
    ready.add("a", 0.2)
    assert ready.take(0.2) == "a"
    assert ready.take(0.2) is None


def test_a_returning_key_takes_no_place() -> None:
    ready = lanes("a", "b")
    ready.take(0.0)
    ready.done("a", 0.1)
    ready.take(0.1)
    ready.add("a", 0.2)
    assert ready.next_free(0.2) == 0.2
    ready.take(0.2)
    ready.add("c", 0.2)
    ready.done("a", 0.3)
    assert ready.next_free(0.3) == 0.1 + BEGINNING


def test_a_key_that_rested_is_idle_again() -> None:
    ready = lanes("a", "b")
    ready.take(0.0)
    ready.done("a", 0.0)
    ready.take(0.0)
    ready.add("a", RETURNING)
    assert ready.take(1.0) is None


def test_a_slow_pass_gives_its_place_up() -> None:
    ready = lanes("slow", "next")
    ready.take(0.0)
    assert ready.take(BEGINNING / 2) is None
    assert ready.next_free(BEGINNING / 2) == BEGINNING
    assert ready.take(BEGINNING) == "next"


def test_a_slow_pass_takes_more_places_than_one() -> None:
    ready = lanes("a", "b", "c", "d", "e", places=2 * SLOW_PLACES)
    for key in ("a", "b"):
        assert ready.take(0.0) == key
        ready.mark_slow(key, slow=True)
    assert ready.take(0.5) is None
    assert ready.next_free(0.5) == BEGINNING
    ready.mark_slow("a", slow=False)
    ready.done("a", 0.5)
    assert [ready.take(0.5) for _ in range(3)] == ["c", "d", None]
    assert ready.next_free(0.5) == BEGINNING, "of b, which gives up two at once"


def test_a_slow_key_keeps_its_places_from_pass_to_pass_until_one_is_quick() -> None:
    ready = lanes("a", "b", places=SLOW_PLACES)
    ready.take(0.0)
    ready.mark_slow("a", slow=True)
    ready.done("a", 0.5)
    assert ready.take(0.5) is None
    ready.add("a", 0.5)
    assert ready.take(0.5) == "a"
    ready.mark_slow("a", slow=False)
    ready.done("a", 1.0)
    assert ready.take(1.0) == "b"


def test_a_slow_key_that_does_not_come_back_gives_its_places_up() -> None:
    ready = lanes("a", "b", places=SLOW_PLACES)
    ready.take(0.0)
    ready.mark_slow("a", slow=True)
    ready.done("a", 0.5)
    assert ready.next_free(1.0) == 0.5 + BEGINNING
    assert ready.take(0.5 + BEGINNING) == "b"


def test_a_slow_key_whose_object_is_gone_gives_its_places_up() -> None:
    ready = lanes("a", "b", places=SLOW_PLACES)
    ready.take(0.0)
    ready.mark_slow("a", slow=True)
    ready.forget("a")
    ready.done("a", 0.5)
    assert ready.take(0.5) == "b"


def test_a_returning_key_takes_no_place_however_slow_it_is() -> None:
    ready = lanes("a", places=2)
    ready.take(0.0)
    ready.done("a", 0.0)
    ready.add("a", 0.1)
    ready.take(0.1)
    ready.mark_slow("a", slow=True)
    ready.add("b", 0.1)
    ready.add("c", 0.1)
    assert [ready.take(0.1), ready.take(0.1)] == ["b", "c"]


def test_nothing_is_free_when_nothing_is_ready() -> None:
    assert lanes().next_free(0.0) is None


def test_a_key_is_ready_once() -> None:
    ready = lanes("a", "a")
    assert len(ready) == 1
    assert ready.take(0.0) == "a"
    assert ready.take(0.0) is None


def test_a_namesake_begins_anew() -> None:
    ready = lanes("a", "b")
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
    ready = lanes("a", "b", places=1)
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
    ready = lanes("a", "b", places=2)
    ready.take(0.0)
    ready.done("a", 0.1)
    ready.add("a", 0.2)
    assert len(ready) == 2


def test_a_key_returns_for_so_long_after_it_was_done_last() -> None:
    ready = lanes("a")
    ready.take(0.0)
    ready.done("a", 0.0)
    ready.add("b", 1.0)
    ready.take(1.0)
    ready.done("b", 1.0)
    ready.done("a", 2.0)
    ready.done("b", RETURNING)
    ready.add("a", RETURNING + 1.0)
    ready.add("c", RETURNING + 1.0)
    assert ready.next_free(RETURNING + 1.0) == RETURNING + 1.0
    assert [ready.take(RETURNING + 1.0) for _ in range(3)] == ["c", "a", None]


def test_places_that_were_given_up_are_not_taken_twice_as_many_the_next_time() -> None:
    ready = lanes("a", "b", places=SLOW_PLACES)
    ready.take(0.0)
    ready.mark_slow("a", slow=True)
    ready.done("a", 0.0)
    ready.take(BEGINNING)
    ready.done("b", BEGINNING)
    later = BEGINNING + RETURNING
    ready.add("a", later)
    ready.add("c", later)
    assert [ready.take(later), ready.take(later)] == ["a", "c"]
