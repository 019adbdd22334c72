"""Takes places and units ahead of the requests that need them, while many requests come (ADR 29, ADR 33)."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Mapping
from typing import Generic, NamedTuple

from flotilla_common.clock import Clock, Entropy
from flotilla_webhook.status_writer import D, StatusWriter, V

WINDOW_SECONDS = 1.0
MANY = 3
"""Number of requests within the window from which on something is taken ahead. Fewer wait for their writes."""

LEAST_SECONDS = 0.1
"""Shortest time that a rate is computed from."""

IDLE_SECONDS = 1.0
"""Time without a request after which the rest is returned.

The apiserver reuses connections, so the requests of one replica come in bursts.
"""


class TakenAhead(NamedTuple):
    """A place or a unit that was taken ahead."""

    key: str  # in the status
    until: float  # when it gets too old for a pod


class RequestRate:
    """The requests of the last second, by subject."""

    def __init__(self, clock: Clock, many: int = MANY) -> None:
        self._clock = clock
        self._many = many
        self._requests: deque[tuple[float, str]] = deque()  # times and subjects of recent requests

    def count_request(self, about: str = "") -> None:
        """Count a request."""
        self._requests.append((self._clock.monotonic(), about))

    def rates(self) -> Mapping[str, float]:
        """Return requests per second by subject, empty while few come."""
        now = self._clock.monotonic()
        while self._requests and self._requests[0][0] <= now - WINDOW_SECONDS:
            self._requests.popleft()
        if len(self._requests) < self._many:
            return {}
        seconds = max(now - self._requests[0][0], LEAST_SECONDS)  # a burst has a rate from its beginning on
        return {about: count / seconds for about, count in Counter(one for _, one in self._requests).items()}

    @property
    def is_idle(self) -> bool:
        """Report whether no request has come for a while."""
        return not self._requests or self._requests[-1][0] <= self._clock.monotonic() - IDLE_SECONDS

    def stop(self) -> None:
        """Drop the requests: no more will come."""
        self._requests.clear()


class TakingAhead(ABC, Generic[V, D]):
    """The part of taking ahead that places and units share: a task that writes what is due while many requests come."""

    def __init__(
        self, writer: StatusWriter[V, D], clock: Clock, entropy: Entropy, prefix: str, many: int = MANY
    ) -> None:
        """Prepare the task; the keys of this replica in the status begin with `prefix`."""
        self._writer = writer
        self._clock = clock
        self._entropy = entropy
        self._own = prefix
        self._rate = RequestRate(clock, many)
        self._task: asyncio.Task[None] | None = None
        self._hurried: asyncio.Task[None] | None = None
        self._is_writing = False
        self._has_failed = False

    @property
    def busy(self) -> bool:
        """Report whether there is or may be something to write."""
        return self._task is not None and not self._task.done()

    def hurry(self) -> None:
        """Add what is due to the write that a request is about to wait for."""
        if self.busy and not self._is_writing:
            self._hurried = asyncio.create_task(self._sync())

    async def close(self) -> None:
        """Return everything. If that fails, it is free again when it expires."""
        self._rate.stop()
        if self._task is not None:
            await self._task

    def count_request(self, about: str = "") -> None:
        """Count a request. If many come, places or units are taken ahead from now on."""
        self._rate.count_request(about)
        if not self.busy and self._rate.rates():
            self._task = asyncio.create_task(self._run())

    @abstractmethod
    async def _run(self) -> None:
        """Take ahead while many requests come, write down who got what, and return the rest."""

    @abstractmethod
    async def _sync(self) -> None:
        """Write what is due."""
