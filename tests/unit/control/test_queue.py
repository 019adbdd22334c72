"""The keyed queue: dedupe, one worker per key, timers, back-off, holds."""

import asyncio

import pytest

from flotilla_common.control.keystate import KeyState, KeyStates, Memory
from flotilla_common.control.priority import PriorityOrder
from flotilla_common.control.queue import Backoff, KeyedQueue
from tests.unit.control.fakes import ManualClock, NoChance

BASE_DELAY = Backoff().base


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def queue(clock: ManualClock) -> KeyedQueue[str]:
    return KeyedQueue(clock, NoChance(), PriorityOrder())


async def drain(queue: KeyedQueue[str]) -> list[str]:
    """Take all keys that are ready."""
    found: list[str] = []
    while True:
        try:
            async with asyncio.timeout(0.01):
                key = await queue.get()
        except TimeoutError:
            return found
        assert key is not None
        found.append(key)
        queue.done(key)


async def test_a_key_is_queued_once(queue: KeyedQueue[str]) -> None:
    for key in ("a", "b", "a"):
        queue.add(key)
    assert await drain(queue) == ["a", "b"]


async def test_a_key_is_never_with_two_workers(queue: KeyedQueue[str]) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await drain(queue) == ["a"]


async def test_the_earliest_wake_up_wins(queue: KeyedQueue[str], clock: ManualClock) -> None:
    queue.add_at("a", clock.monotonic() + 60)
    queue.add_at("a", clock.monotonic() + 10)
    queue.add_at("a", clock.monotonic() + 30)
    clock.advance(11)
    assert await drain(queue) == ["a"]
    clock.advance(100)
    assert await drain(queue) == []


async def test_back_off_doubles_and_success_resets_it(queue: KeyedQueue[str], clock: ManualClock) -> None:
    delays = []
    for _ in range(4):
        delays.append(queue.retry("a"))
        clock.advance(10)
        assert await drain(queue) == ["a"]
    assert delays == [BASE_DELAY, BASE_DELAY * 2, BASE_DELAY * 4, BASE_DELAY * 8]
    queue.succeed("a")
    assert queue.retry("a") == BASE_DELAY


async def test_back_off_has_an_end(queue: KeyedQueue[str], clock: ManualClock) -> None:
    for _ in range(40):
        delay = queue.retry("a")
        clock.advance(2000)
        await drain(queue)
    assert delay == 1000


async def test_a_hold_puts_changes_off_but_not_for_ever(queue: KeyedQueue[str], clock: ManualClock) -> None:
    queue.hold("a", 5)
    queue.add("a")
    assert await drain(queue) == []
    clock.advance(5.1)
    assert await drain(queue) == ["a"]


async def test_a_timer_that_ends_while_the_key_is_busy_is_not_lost(queue: KeyedQueue[str], clock: ManualClock) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add_at("a", clock.monotonic() + 1)
    clock.advance(2)
    assert await drain(queue) == []
    queue.done("a")
    assert await drain(queue) == ["a"]


async def test_forget_drops_timers(queue: KeyedQueue[str], clock: ManualClock) -> None:
    queue.add_at("a", clock.monotonic() + 1)
    queue.forget("a")
    clock.advance(2)
    assert await drain(queue) == []


@pytest.mark.parametrize("changed", [False, True])
async def test_nothing_is_kept_of_an_object_that_is_gone(clock: ManualClock, changed: bool) -> None:
    states = KeyStates[str]()
    queue = KeyedQueue(clock, NoChance(), PriorityOrder(), states=states)
    for _ in range(2 if changed else 1):
        queue.add("a")
        assert await queue.get() == "a"
        queue.retry("a")
        queue.hold("a", 5.0)
        states["a"].memory = Memory(notes={"a": "b"})
        if changed:
            queue.add("a")
        queue.forget("a")
        assert states == {"a": KeyState(busy=True, changed=changed)}
        changed = False
        queue.done("a")
    assert states == {}


async def test_close_sends_workers_home(queue: KeyedQueue[str]) -> None:
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.close()
    assert await waiting is None


async def test_the_back_off_is_a_setting(clock: ManualClock) -> None:
    queue = KeyedQueue[str](clock, NoChance(), PriorityOrder(), Backoff(base=1.0, most=3.0))
    delays = []
    for _ in range(4):
        delays.append(queue.retry("a"))
        clock.advance(4)
    assert delays == [1.0, 2.0, 3.0, 3.0]


async def test_a_back_off_may_have_a_limit(clock: ManualClock) -> None:
    queue = KeyedQueue[str](clock, NoChance(), PriorityOrder(), Backoff(base=1.0, most=9.0))
    delays: list[float] = []
    for limit in (2.0, 2.0, 2.0, 9.0):
        delays.append(queue.retry("a", at_most=limit))
        clock.advance(9)
    assert delays == [1.0, 2.0, 2.0, 8.0]
    assert queue.retry("a", at_least=5.0, at_most=2.0) == 5.0


async def test_failures_before_the_retry_are_no_steps_of_the_back_off(
    queue: KeyedQueue[str], clock: ManualClock
) -> None:
    """A burst of changes, each followed by a failing pass, must not put the retry off to the longest delay."""
    clock.advance(1000)
    queue.retry("a")
    for _ in range(50):
        clock.advance(BASE_DELAY / 100)
        queue.add("a")
        assert await queue.get() == "a"
        assert queue.retry("a") < BASE_DELAY
        queue.done("a")
    clock.advance(BASE_DELAY)
    assert await drain(queue) == ["a"]
    assert queue.retry("a") == BASE_DELAY * 2
