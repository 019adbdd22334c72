"""How many writes may be in flight at once: measured, not configured.

The limit grows by one per round of good answers and shrinks when the apiserver says 429 or takes far longer than it
does at its best (additive increase, multiplicative decrease). So one service neither floods a small apiserver nor
leaves a large one idle. While the apiserver asks for a pause (Retry-After), no write is sent at all.

Creates of pods have low priority, for the same reason as idle keys in `priority`: the next write of a pod that exists
must not queue behind hundreds of pods that are newer still. They cannot starve: every fourth slot is theirs all the
same.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from flotilla_common.clock import Clock

LEAST = 4.0
"""The limit never falls below this: enough to keep going while the apiserver recovers."""

INITIAL = 16.0
"""A modest start: a fresh apiserver answers 16 writes side by side without queueing."""

MOST = 64.0
"""Above this, more writes side by side only wait in the apiserver (measured: throughput is flat from 32 on)."""

SLOW_FACTOR = 8.0
"""An answer that takes this many times the best latency counts as a sign of overload …"""

SLOW_FLOOR = 0.1
"""… but never below this many seconds: scheduling noise is no overload. A longer queue would not write more; the
scheduler, the kubelets and our own next write would only wait longer in it."""


LOW_PRIORITY_SHARE = 4
"""Of this many slots that become free, one goes to a write of low priority, if any waits."""

RECENT = 0.1
"""Weight of the newest answer in the running mean of latencies."""

LONGEST_PAUSE = 30.0
"""Seconds of pause that a Retry-After may ask for at most: the answer may come from some proxy."""


class Limiter:
    """A semaphore whose size follows the apiserver's answers. Shared by all executors of a process."""

    def __init__(self, clock: Clock, initial: float = INITIAL, most: float = MOST) -> None:
        self._clock = clock
        self._limit = initial
        self._most = most
        self._running = 0  # slots that were given to writes
        self._low: deque[asyncio.Future[None]] = deque()  # writes of low priority that wait for a slot
        self._high: deque[asyncio.Future[None]] = deque()
        self._high_in_a_row = 0  # slots that were given to others while a write of low priority waited
        self._best = float("inf")  # seconds that an answer takes at its best
        self._recent = 0.0
        self._last_cut = float("-inf")
        self._paused_until = float("-inf")

    @property
    def answer_seconds(self) -> float:
        """What an answer takes at the moment: a running mean."""
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
        """Whoever waits is given a slot by the one who has done with it. Were it only free for whoever comes first, a
        worker that goes on with its next write would take it again and again."""
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
        """Seconds that no write may be sent."""
        return self._paused_until - self._clock.monotonic()

    def answered(self, seconds: float) -> None:
        """An answer came after `seconds`: adjust the limit."""
        self._recent += (seconds - self._recent) * RECENT
        # The best rises slowly by itself, so that one lucky answer does not count for ever.
        self._best = min(self._best * 1.001, seconds)
        if seconds > max(self._best * SLOW_FACTOR, SLOW_FLOOR):
            self._cut(0.9, seconds)
        elif self._limit < self._most:
            self._limit = min(self._limit + 1 / self._limit, self._most)

    def throttled(self, retry_after: float = 0.0) -> None:
        """The apiserver said 429, and perhaps for how many seconds nothing is to be sent."""
        self._cut(0.5, 1.0)
        self._paused_until = max(self._paused_until, self._clock.monotonic() + min(retry_after, LONGEST_PAUSE))

    def _cut(self, factor: float, at_most_every: float) -> None:
        """Shrink once per `at_most_every` seconds: all writes in flight get the same bad answers."""
        now = self._clock.monotonic()
        if now - self._last_cut >= at_most_every:
            self._last_cut = now
            self._limit = max(self._limit * factor, LEAST)

    def _hand_out(self) -> None:
        """Give the free slots to those who wait."""
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
