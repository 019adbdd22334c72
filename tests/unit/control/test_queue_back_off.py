"""Back-off, holds and what a queue must forget with an object."""

import asyncio

import pytest

from flotilla_common.control.priority import PriorityOrder
from flotilla_common.control.queue import JITTER, Backoff, KeyedQueue
from tests.unit.control.fakes import ManualClock, NoChance, next_due
from tests.unit.control.test_queue import BASE_DELAY, drain


class AllChance(NoChance):
    """Always the high end."""

    def uniform(self, low: float, high: float) -> float:
        return high


class Incomparable:
    """A key that cannot be put in order."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def queue(clock: ManualClock) -> KeyedQueue[str]:
    return KeyedQueue(clock, NoChance(), PriorityOrder(10))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [({}, BASE_DELAY), ({"at_least": 3.0}, 3.0), ({"at_most": 0.001}, 0.001)],
    ids=["back-off", "at least", "at most"],
)
def test_chance_makes_every_delay_longer_never_shorter(limits: dict[str, float], expected: float) -> None:
    queue = KeyedQueue[str](ManualClock(), AllChance(), PriorityOrder())
    assert queue.retry("a", **limits) == pytest.approx(expected * (1 + JITTER))


def test_the_longest_delay_is_the_longest(clock: ManualClock) -> None:
    queue = KeyedQueue[str](clock, NoChance(), PriorityOrder(), Backoff(base=1.0, most=3.0))
    delays: list[float] = []
    for _ in range(4):
        delays.append(queue.retry("a"))
        clock.advance(10)
    assert delays == [1.0, 2.0, 3.0, 3.0]


async def test_success_and_the_end_of_an_object_take_its_back_off_away(queue: KeyedQueue[str]) -> None:
    for ended in (queue.succeed, queue.forget):
        queue.retry("a", at_least=10.0)
        ended("a")
        assert queue.retry("a") == BASE_DELAY
        queue.forget("a")


async def test_a_back_off_that_is_over_counts_until_the_object_is_gone(
    queue: KeyedQueue[str], clock: ManualClock
) -> None:
    queue.retry("a")
    clock.advance(1)
    assert queue.retry("a") == 2 * BASE_DELAY
    clock.advance(1)
    queue.forget("a")
    assert queue.retry("a") == BASE_DELAY


async def test_a_hold_of_less_than_a_second_holds(queue: KeyedQueue[str], clock: ManualClock) -> None:
    queue.hold("a", 0.5)
    queue.add("a")
    assert len(queue) == 0
    assert next_due(queue) == clock.monotonic() + 0.5
    clock.advance(0.5)
    assert await drain(queue) == ["a"]


async def test_a_namesake_of_what_is_gone_is_not_held(queue: KeyedQueue[str]) -> None:
    queue.hold("a", 10)
    queue.forget("a")
    queue.add("a")
    assert len(queue) == 1
    queue.forget("never seen")


async def test_keys_that_are_due_at_once_come_in_order_of_arrival(clock: ManualClock) -> None:
    queue = KeyedQueue[Incomparable](clock, NoChance(), PriorityOrder(10))
    keys = [Incomparable() for _ in range(5)]
    for key in keys:
        queue.add_at(key, clock.monotonic() + 1)
    clock.advance(1)
    assert [await queue.get() for _ in keys] == keys


async def test_a_worker_that_is_cancelled_while_it_waits_is_forgotten(queue: KeyedQueue[str]) -> None:
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    queue.add("a")
    assert await queue.get() == "a"


async def test_a_namesake_of_what_is_gone_does_not_return_but_begins() -> None:
    queue = KeyedQueue[str](ManualClock(), NoChance(), PriorityOrder())
    queue.add("a")
    key = str(await queue.get())
    queue.forget(key)  # what the pass found
    queue.done(key)
    for key in ("b", "a"):
        queue.add(key)
    assert await queue.get() == "b"
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not waiting.done(), "the only place for what begins is taken"
    queue.close()
    assert await waiting is None
