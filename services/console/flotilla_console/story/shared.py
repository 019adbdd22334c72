"""Reads from the bus once for all viewers who want the same within a few seconds."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from flotilla_common.clock import Clock

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")

SHARED_SECONDS = 3.0
"""Time for which all viewers get the same."""

MOST_SHARED = 64
"""Results that are kept for that time."""


class Shared(Generic[Key, T]):
    """The results of the last reads by their keys."""

    def __init__(self, read: Callable[[Key], Awaitable[T]], clock: Clock) -> None:
        self._read, self._clock = read, clock
        self._begun: dict[Key, tuple[float, asyncio.Task[T]]] = {}

    async def of(self, key: Key) -> T:
        """Return the result for a key. A viewer who leaves does not end the read of the others."""
        now = self._clock.monotonic()
        begun = self._begun.get(key)
        if begun is None or now - begun[0] > SHARED_SECONDS:
            self._forget(now)
            self._begun[key] = begun = now, asyncio.ensure_future(self._read(key))
        return await asyncio.shield(begun[1])

    def _forget(self, now: float) -> None:
        """Forget old results, and those of too many."""
        for key, (at, task) in list(self._begun.items()):
            if task.done() and (now - at > SHARED_SECONDS or len(self._begun) >= MOST_SHARED):
                del self._begun[key]
