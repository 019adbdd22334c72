"""Rate limits per source: a burst, and a number of uses per second."""

from collections import OrderedDict

SOURCES = 10_000
"""Number of sources that are kept, the most recently active ones: more than a cluster has nodes."""

LEAST_WAIT = 0.02
"""Shortest wait in seconds.

A remaining wait may be too short for a clock to advance; the source would retry at the same moment again and again.
"""


class Quota:
    """A token bucket for each of many sources."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much was used, and when (monotonic)

    def left(self, source: str, now: float) -> bool:
        """Return whether the source may act at this moment (monotonic)."""
        return self._level(source, now) + 1 <= self._burst

    def take(self, source: str, now: float) -> bool:
        """Return whether the source may act, and count it if so."""
        level = self._level(source, now)
        allowed = level + 1 <= self._burst
        self._used[source] = (level + 1 if allowed else level, now)
        self._used.move_to_end(source)
        if len(self._used) > SOURCES:
            self._used.popitem(last=False)
        return allowed

    def wait(self, source: str, now: float) -> float:
        """Return the seconds until the source should try again: 0 if it may act now, else `LEAST_WAIT` or more."""
        lacking = self._level(source, now) + 1 - self._burst
        return max(lacking / self._per_second, LEAST_WAIT) if lacking > 0 else 0.0

    def _level(self, source: str, now: float) -> float:
        used, since = self._used.get(source, (0.0, now))
        return max(used - (now - since) * self._per_second, 0.0)
