"""Notices when the wall clock is set.

What plans wait for are moments on the wall clock, and they are waited for by the monotonic one, which never jumps. So
when the wall clock is set, or the machine was asleep, whoever waits has to reckon anew.
"""

from collections.abc import Callable

from flotilla_common.clock import Clock

INTERVAL = 1.0
"""Seconds between two looks."""

STEP = 0.5
"""Seconds by which the clocks must have parted: smaller steps do no harm."""


async def follow_clock(clock: Clock, was_set: Callable[[], None]) -> None:
    """Call `was_set` each time that the wall clock was set. Never returns."""
    apart = _apart(clock)
    while True:
        await clock.sleep(INTERVAL)
        if abs(_apart(clock) - apart) > STEP:
            apart = _apart(clock)
            was_set()


def _apart(clock: Clock) -> float:
    return clock.now().timestamp() - clock.monotonic()
