"""Time and randomness, injected.

Code that reads the time, waits or draws random numbers takes a `Clock` or an `Entropy`, so that tests and the simulator
control both. Only this module may use the real ones (ruff bans them elsewhere).
"""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

INTERVAL = 1.0
"""Seconds between two checks for a change of the wall clock."""

STEP = 0.5
"""Seconds by which the wall clock must have jumped; smaller steps are harmless."""


class Clock(Protocol):
    """Wall time for what users see, monotonic time for durations, deadlines and leases."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start; never jumps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; for zero or less only yield to other tasks."""
        ...


class Entropy(Protocol):
    """Randomness for jitter and identities, never for names of Kubernetes objects (those are deterministic)."""

    def uniform(self, low: float, high: float) -> float:
        """Return a number in [low, high]."""
        ...

    def token(self) -> str:
        """Return a new identity of 10 lower-case hexadecimal digits."""
        ...

    def uuid(self) -> str:
        """Return a new random UUID."""
        ...


class SystemClock:
    """The real clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))


class SystemEntropy:
    """The operating system's randomness."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def token(self) -> str:
        return f"{self._random.getrandbits(40):010x}"

    def uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))


async def follow_clock(clock: Clock, was_set: Callable[[], None]) -> None:
    """Call `was_set` each time the wall clock was set. Never returns.

    Plans wait for moments of the wall clock, but the wait is timed by the monotonic clock. When the wall clock is set,
    or the machine was suspended, those waits have to be computed again.
    """
    apart = _apart(clock)
    while True:
        await clock.sleep(INTERVAL)
        if abs(_apart(clock) - apart) > STEP:
            apart = _apart(clock)
            was_set()


def _apart(clock: Clock) -> float:
    return clock.now().timestamp() - clock.monotonic()


class ManualClock:
    """A clock that shows `time`, which its owner sets."""

    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        """Return at once."""
