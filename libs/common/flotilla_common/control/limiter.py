"""How many writes may be under way at once: found out, not configured.

The limit grows by one per round of good answers and shrinks when the apiserver says 429 or takes far longer than it
does at its best (additive increase, multiplicative decrease). So one service neither floods a small apiserver nor
leaves a large one idle. An apiserver that says when to come back (Retry-After) is left in peace until then, by all.

Writes that begin something, creates, wait behind those that get on with what is begun, for the same reason as in
`lanes`: what a new pod needs next must not queue behind hundreds of pods that are newer still. Every fourth place is
theirs all the same.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from flotilla_common.clock import Clock

LEAST = 4.0
"""Writes under way that are always allowed: enough to keep going while the apiserver recovers."""

INITIAL = 16.0
"""A modest start: a fresh apiserver answers 16 writes side by side without queueing."""

MOST = 64.0
"""Above this, more writes side by side only wait in the apiserver (measured: throughput is flat from 32 on)."""

SLOW_FACTOR = 8.0
"""An answer that takes this many times the best latency counts as a sign of overload …"""

SLOW_FLOOR = 0.1
"""… but never below this many seconds: scheduling noise is no overload. A longer queue would not write more; the
scheduler, the kubelets and our own next write would only wait longer in it."""


BEGINNING_SHARE = 4
"""Of so many places that become free, one goes to a write that begins something, if any waits."""

RECENT = 0.1
"""Share of the newest answer in what answers take at the moment."""

LONGEST_HOLD = 30.0
"""Seconds that a Retry-After holds all writes back at most; whoever answers may be a proxy with strange ideas."""


class Limiter:
    """A semaphore whose size follows the apiserver's answers. Shared by all executors of a process."""

    def __init__(self, clock: Clock, initial: float = INITIAL, most: float = MOST) -> None:
        self._clock = clock
        self._limit = initial
        self._most = most
        self._running = 0
        self._beginning: deque[asyncio.Future[None]] = deque()
        self._going_on: deque[asyncio.Future[None]] = deque()
        self._gone_on = 0  # places in a row that did not go to beginners
        self._best = float("inf")
        self._recent = 0.0
        self._last_cut = float("-inf")
        self._held_until = float("-inf")

    @property
    def limit(self) -> int:
        """Writes that may be under way now."""
        return int(self._limit)

    @property
    def running(self) -> int:
        """Writes that are under way."""
        return self._running

    @property
    def answer_seconds(self) -> float:
        """What an answer takes at the moment: a running mean."""
        return self._recent

    @asynccontextmanager
    async def slot(self, *, begins: bool = False) -> AsyncGenerator[None]:
        """Wait for a place, hold it for the block. `begins`: the write begins something rather than getting it on."""
        try:
            while not self._free or self._held > 0:
                if self._held > 0:
                    await self._clock.sleep(self._held)
                else:
                    await self._place(self._beginning if begins else self._going_on)
        except asyncio.CancelledError:
            self._release_waiters()  # a place that was given to us goes to the next
            raise
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._release_waiters()

    @property
    def _free(self) -> bool:
        return self._running < int(self._limit)

    @property
    def _held(self) -> float:
        """Seconds that no write may begin."""
        return self._held_until - self._clock.monotonic()

    @staticmethod
    async def _place(queue: deque[asyncio.Future[None]]) -> None:
        """Wait until there may be a place."""
        waiter = asyncio.get_running_loop().create_future()
        queue.append(waiter)
        try:
            await waiter
        finally:
            if waiter in queue:
                queue.remove(waiter)

    def answered(self, seconds: float) -> None:
        """An answer came after `seconds`."""
        self._recent += (seconds - self._recent) * RECENT
        self._best = min(
            self._best * 1.001, seconds
        )  # forgets slowly, so that one lucky answer does not count for ever
        if seconds > max(self._best * SLOW_FACTOR, SLOW_FLOOR):
            self._cut(0.9, seconds)
        elif self._limit < self._most:
            self._limit = min(self._limit + 1 / self._limit, self._most)

    def throttled(self, retry_after: float = 0.0) -> None:
        """The apiserver said 429, and perhaps for how many seconds to stay away: then no write begins meanwhile,
        whatever it is about."""
        self._cut(0.5, 1.0)
        self._held_until = max(self._held_until, self._clock.monotonic() + min(retry_after, LONGEST_HOLD))

    def _cut(self, factor: float, at_most_every: float) -> None:
        """Shrink once per period: the answers to everything already under way tell the same story."""
        now = self._clock.monotonic()
        if now - self._last_cut >= at_most_every:
            self._last_cut = now
            self._limit = max(self._limit * factor, LEAST)

    def _release_waiters(self) -> None:
        free = int(self._limit) - self._running
        while free > 0 and (self._going_on or self._beginning):
            waiter = self._next()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1

    def _next(self) -> asyncio.Future[None]:
        if self._going_on and not (self._beginning and self._gone_on >= BEGINNING_SHARE - 1):
            self._gone_on += 1
            return self._going_on.popleft()
        self._gone_on = 0
        return self._beginning.popleft()
