"""The keyed work queue, which decides when each key is planned.

A key is queued at most once and never given to two workers at a time; a key that changes while it is busy is queued
again afterwards. Keys can be due later (a plan's `wake_at`, backoff after a failure), and a worker may hold its key
back for a moment when it is done, so that a large workload is not planned once per pod event (architecture.md §5).

`priority` decides which of the ready keys is next; this module is the mechanism.

Waiting workers are woken one at a time: a worker that takes a key wakes the next if there is more to take. One timer
for all of them fires when the next key is due. So a change wakes one worker, however many there are.
"""

import asyncio
import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

from flotilla_common.clock import Clock, Entropy
from flotilla_common.control.keystate import NEVER, KeyStates
from flotilla_common.control.metrics import QueueMetrics
from flotilla_common.control.priority import PriorityOrder

K = TypeVar("K", bound=Hashable)


class Backoff(msgspec.Struct, frozen=True):
    """The delays of failed keys, in seconds.

    They start with `base` (`--rate-limiter-base-delay`) and double up to `most` (`--rate-limiter-max-delay`; both
    install.md §4).
    """

    base: float = 0.005
    most: float = 1000.0


JITTER = 0.1
"""Random share of a backoff, so that keys that failed together do not return together."""


class KeyedQueue(Generic[K]):
    """Keys waiting for a worker. Not thread-safe: one event loop."""

    def __init__(
        self,
        clock: Clock,
        entropy: Entropy,
        order: PriorityOrder[K],
        backoff: Backoff | None = None,
        meter: QueueMetrics | None = None,
        states: KeyStates[K] | None = None,
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._backoff = backoff or Backoff()
        self._meter = meter
        self._ready = order
        self._states: KeyStates[K] = KeyStates() if states is None else states
        self._heap: list[tuple[float, int, K]] = []  # of delayed keys; those whose state names another time are void
        self._pushes = 0  # orders heap entries with equal times; keys need not be comparable
        self._waiting: dict[asyncio.Future[None], None] = {}  # one for each waiting worker, longest first
        self._woken: asyncio.Future[None] | None = None  # of a worker that was woken and has not run yet
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._closed = False

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Queue the key, for as soon as a hold on it ends."""
        state = self._states[key]
        if state.busy:
            state.changed = True
        elif key in self._ready:
            pass
        elif state.hold_until > self._clock.monotonic():
            self.add_at(key, state.hold_until)
        else:
            self._make_ready(key)
            self._wake_one()

    def add_at(self, key: K, when: float) -> None:
        """Queue the key for `when` (monotonic seconds); an earlier wake-up of the same key wins."""
        state = self._states[key]
        if key in self._ready or (state.due is not None and state.due <= when):
            return
        state.due = when
        self._pushes += 1
        heapq.heappush(self._heap, (when, self._pushes, key))
        self._wake_one()

    def retry(self, key: K, at_least: float = 0.0, at_most: float = float("inf")) -> float:
        """Requeue a failed key after its backoff, within `at_least` and `at_most` seconds; return the delay.

        A failure before the retry is due does not count. A key may change many times a second; if each failure counted,
        one burst would postpone the next retry by the longest delay.
        """
        now, state = self._clock.monotonic(), self._states[key]
        spread = 1 + self._entropy.uniform(0, JITTER)
        delay = state.retry_at - now
        if delay <= 0:
            delay = min(self._backoff.base * 2 ** min(state.failures, 30), self._backoff.most) * spread
            state.failures += 1
        delay = max(min(delay, at_most * spread), at_least * spread)
        state.retry_at = now + delay
        self.add_at(key, now + delay)
        if self._meter is not None:
            self._meter.retried()
        return delay

    def succeed(self, key: K) -> None:
        """Reset the key's backoff."""
        state = self._states[key]
        state.failures, state.retry_at = 0, NEVER

    def hold(self, key: K, seconds: float) -> None:
        """Delay the next pass over the key by at least this many seconds, even if it changes."""
        if seconds > 0:
            self._states[key].hold_until = self._clock.monotonic() + seconds

    async def get(self) -> K | None:
        """Wait for the next key, which must be returned with `done`; return None when the queue is closed."""
        while not self._closed:
            self._promote()
            key = self._ready.take(self._clock.monotonic())
            if key is not None:
                state = self._states[key]
                state.due, state.busy = None, True
                if self._meter is not None:
                    self._meter.taken(key)
                self._wake_one()
                return key
            await self._wait()
        return None

    def done(self, key: K) -> None:
        """Return a key after its pass."""
        state = self._states[key]
        state.busy = False
        self._ready.done(key, self._clock.monotonic())
        if self._meter is not None:
            self._meter.done(key)
        if state.changed:
            state.changed = False
            self.add(key)
        else:
            self._states.tidy(key)
        self._wake_one()

    def forget(self, key: K) -> None:
        """Drop the timers, backoff and hold of a busy key whose object is gone; `done` is still required."""
        self._states.forget(key)
        self._ready.forget(key)

    def close(self) -> None:
        """Close the queue: every `get` returns None from now on."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _make_ready(self, key: K) -> None:
        self._states[key].hold_until = NEVER
        if self._meter is not None and key not in self._ready:
            self._meter.queued(key)
        self._ready.add(key, self._clock.monotonic())

    def _promote(self) -> None:
        """Move the delayed keys that are due to the ready ones."""
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            when, _, key = heapq.heappop(self._heap)
            state = self._states.get(key)
            if state is None or state.due != when:
                continue  # replaced by an earlier wake-up, or forgotten
            state.due = None
            if state.busy:
                state.changed = True
            else:
                self._make_ready(key)

    async def _wait(self) -> None:
        """Wait until woken. A worker that is cancelled after it was woken wakes another one instead."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = None
        self._wake_one()
        try:
            await waiter
        except asyncio.CancelledError:
            self._leave(waiter)
            self._wake_one()
            raise
        self._leave(waiter)

    def _leave(self, waiter: asyncio.Future[None]) -> None:
        self._waiting.pop(waiter, None)
        if self._woken is waiter:
            self._woken = None

    def _wake_one(self) -> None:
        """Wake one waiting worker as soon as there is something to take. Call it after every change.

        It has no effect while a woken worker has not run yet: that worker calls it itself, whether it finds a key or
        not.
        """
        if self._woken is not None or self._closed:
            return
        waiter = next((one for one in self._waiting if not one.done()), None)
        when = self._next_time()
        if waiter is None or when is None:
            return
        delay = when - self._clock.monotonic()
        if delay > 0:
            self._set_timer(when, delay)
        else:
            del self._waiting[waiter]
            self._woken = waiter
            waiter.set_result(None)

    def _next_time(self) -> float | None:
        """Return when a worker may find a key; None if no key is queued."""
        free = self._ready.next_free(self._clock.monotonic())
        due = self._heap[0][0] if self._heap else None
        return due if free is None else free if due is None else min(free, due)

    def _set_timer(self, when: float, delay: float) -> None:
        if self._timer is not None:
            if self._timer_at <= when:
                return
            self._timer.cancel()
        self._timer_at = when
        self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._wake_one()
