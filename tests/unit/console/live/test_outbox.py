"""The outbox of a stream: limited, and certain about what is gone."""

from hypothesis import given
from hypothesis import strategies as st

from flotilla_console.live.outbox import Outbox


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(-1, 35))
def test_it_returns_all_events_after_a_number_or_says_that_some_are_gone(sizes: list[int], number: int) -> None:
    outbox = Outbox(max_events=5, max_bytes=20)
    events = [b"x" * size for size in sizes]
    for event in events:
        outbox.append(event)
    found = outbox.after(number)
    if found is not None:
        assert found == [(place, events[place - 1]) for place in range(number + 1, len(events) + 1)]
        assert len(found) <= 5
        assert sum(len(event) for _, event in found) <= 20
    else:
        assert not 0 <= number <= len(events) or len(events) - number > 5 or sum(sizes[number:]) > 20


def test_after_clearing_every_reader_misses_something() -> None:
    outbox = Outbox()
    outbox.append(b"a")
    outbox.clear()
    assert [outbox.after(number) for number in (0, 1, 2)] == [None, None, []]
