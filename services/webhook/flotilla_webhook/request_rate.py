"""Measures the pace of requests: while many come, their needs are taken ahead (ADR 29, ADR 33)."""

from collections import Counter, deque
from collections.abc import Mapping
from typing import NamedTuple

from flotilla_common.clock import Clock

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
