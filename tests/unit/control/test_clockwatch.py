"""Detection of a wall clock that was set."""

import asyncio

from flotilla_common.clock import INTERVAL, STEP, follow_clock
from tests.unit.control.fakes import ManualClock

TURNS = 50
"""Turns of the event loop: more than all reads of a test take."""


class SettableClock(ManualClock):
    """The wall clock goes wrong by these steps, one with each look."""

    def __init__(self, *steps: float) -> None:
        super().__init__()
        self.steps = list(steps)

    async def sleep(self, seconds: float) -> None:
        assert seconds == INTERVAL
        await super().sleep(seconds)
        await asyncio.sleep(0)
        if not self.steps:
            await asyncio.Event().wait()
        self.wrong += self.steps.pop(0)


async def noticed(*steps: float) -> list[float]:
    """Return the clock's error each time that a change was detected."""
    clock, found = SettableClock(*steps), list[float]()
    task = asyncio.create_task(follow_clock(clock, lambda: found.append(clock.wrong)))
    for _ in range(TURNS):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return found


async def test_steps_forward_and_back_are_noticed_once_each() -> None:
    assert await noticed(0, 3600, 0, -7200, 0) == [3600, -3600]


async def test_small_steps_are_noticed_when_they_add_up() -> None:
    small = STEP * 0.6
    assert await noticed(small, small, small) == [2 * small]
