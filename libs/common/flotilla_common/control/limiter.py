"""Limits concurrent writes, by measurement instead of configuration.

The limit grows by one per round of good responses and shrinks when the apiserver sends 429 or takes far longer than at
its best (additive increase, multiplicative decrease). So one service neither floods a small apiserver nor leaves a
large one idle. While the apiserver asks for a pause (Retry-After), no write is sent at all.

Creates of pods have low priority, for the same reason as idle keys in `priority`: the next write of an existing pod
must not queue behind hundreds of creates. These cannot starve: they get every fourth slot.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from flotilla_common.clock import Clock

LEAST = 4.0
"""The lowest limit: enough to make progress while the apiserver recovers."""

INITIAL = 16.0
"""The initial limit: a fresh apiserver handles 16 concurrent writes without queueing."""

MOST = 64.0
"""The highest limit: more concurrent writes only wait in the apiserver (measured: throughput is flat from 32 on)."""

SLOW_FACTOR = 8.0
"""A response that takes this many times the best latency is a sign of overload."""

SLOW_FLOOR = 0.1
"""Shortest latency in seconds that is a sign of overload: scheduling noise is not.

A longer queue would not increase throughput; the scheduler, the kubelets and our next write would only wait longer.
"""


LOW_PRIORITY_SHARE = 4
"""One of this many slots goes to a write of low priority, if any waits."""

RECENT = 0.1
"""Weight of the newest response in the running mean of latencies."""

LONGEST_PAUSE = 30.0
"""Longest pause in seconds that a Retry-After may cause: the response may come from a proxy."""


class Limiter:
    """A semaphore whose size follows the apiserver's responses, shared by all executors of a process."""

    def __init__(self, clock: Clock, initial: float = INITIAL, most: float = MOST) -> None:
        self._clock = clock
        self._limit = initial
        self._most = most
        self._running = 0  # slots in use
        self._low: deque[asyncio.Future[None]] = deque()  # writes of low priority that wait for a slot
        self._high: deque[asyncio.Future[None]] = deque()
        self._high_in_a_row = 0  # slots given to other writes while one of low priority waited
        self._best = float("inf")  # the best latency in seconds
        self._recent = 0.0
        self._last_cut = float("-inf")
        self._paused_until = float("-inf")

    @property
    def answer_seconds(self) -> float:
        """The current latency of writes in seconds: a running mean."""
        return self._recent

    @asynccontextmanager
    async def slot(self, *, low_priority: bool = False) -> AsyncGenerator[None]:
        """Wait for a slot and hold it for the block."""
        await self._take(self._low if low_priority else self._high)
        try:
            while self._pause > 0:
                await self._clock.sleep(self._pause)
            yield
        finally:
            self._give_back()

    async def _take(self, queue: deque[asyncio.Future[None]]) -> None:
        """Queue for a slot, which the write that finishes hands over.

        If the first to ask got a free slot, a busy worker would take its own again every time.
        """
        waiter = asyncio.get_running_loop().create_future()
        queue.append(waiter)
        self._hand_out()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in queue:
                queue.remove(waiter)
            elif not waiter.cancelled():
                self._give_back()
            raise

    def _give_back(self) -> None:
        self._running -= 1
        self._hand_out()

    @property
    def _pause(self) -> float:
        """The seconds for which no write may be sent."""
        return self._paused_until - self._clock.monotonic()

    def answered(self, seconds: float) -> None:
        """Adjust the limit after a response that took `seconds`."""
        self._recent += (seconds - self._recent) * RECENT
        # The best rises slowly by itself, so that one fast response does not count without end.
        self._best = min(self._best * 1.001, seconds)
        if seconds > max(self._best * SLOW_FACTOR, SLOW_FLOOR):
            self._cut(0.9, seconds)
        elif self._limit < self._most:
            self._limit = min(self._limit + 1 / self._limit, self._most)

    def throttled(self, retry_after: float = 0.0) -> None:
        """Halve the limit after a 429, and pause for `retry_after` seconds."""
        self._cut(0.5, 1.0)
        self._paused_until = max(self._paused_until, self._clock.monotonic() + min(retry_after, LONGEST_PAUSE))

    def _cut(self, factor: float, at_most_every: float) -> None:
        """Shrink once per `at_most_every` seconds: all writes in flight get the same bad responses."""
        now = self._clock.monotonic()
        if now - self._last_cut >= at_most_every:
            self._last_cut = now
            self._limit = max(self._limit * factor, LEAST)

    def _hand_out(self) -> None:
        """Give the free slots to waiting writes."""
        while self._running < int(self._limit) and (self._high or self._low):
            waiter = self._next_waiter()
            if not waiter.done():
                self._running += 1
                waiter.set_result(None)

    def _next_waiter(self) -> asyncio.Future[None]:
        lows_turn = self._low and self._high_in_a_row >= LOW_PRIORITY_SHARE - 1
        if self._high and not lows_turn:
            self._high_in_a_row = self._high_in_a_row + 1 if self._low else 0
            return self._high.popleft()
        self._high_in_a_row = 0
        return self._low.popleft()
