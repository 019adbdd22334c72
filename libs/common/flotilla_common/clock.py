"""Time and chance, injected.

Everything that asks for the time, waits, or rolls dice takes a `Clock` or an `Entropy`, so that a test or the
simulator can own both. This module is the only one that may touch the real ones (ruff bans them elsewhere).
"""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

INTERVAL = 1.0
"""Seconds between two looks whether the wall clock was set."""

STEP = 0.5
"""Seconds by which the clocks must have parted: smaller steps do no harm."""


class Clock(Protocol):
    """Wall time for what users see, monotonic time for every duration, deadline and lease."""

    def now(self) -> datetime:
        """The wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never jumps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; at once for zero or less, but always yields to other tasks."""
        ...


class Entropy(Protocol):
    """Chance for jitter and identities, never for names of Kubernetes objects (those are deterministic)."""

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high]."""
        ...

    def token(self) -> str:
        """A fresh identity of 10 lower-case hexadecimal digits."""
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
    """The real dice."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def token(self) -> str:
        return f"{self._random.getrandbits(40):010x}"

    def uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))


async def follow_clock(clock: Clock, was_set: Callable[[], None]) -> None:
    """Call `was_set` each time that the wall clock was set. Never returns.

    What plans wait for are moments on the wall clock, and they are waited for by the monotonic one, which never jumps.
    So when the wall clock is set, or the machine was asleep, whoever waits has to reckon anew.
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
    """Show `time`. Nobody waits by this clock."""

    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        """Return at once."""
