"""Limits of how often each source may do something: so many times at once, and then so many times per second."""

from collections import OrderedDict

SOURCES = 10_000
"""Sources that are known at a time, those that were active last: more than a cluster has nodes."""

LEAST_WAIT = 0.02
"""Seconds. What is left to wait may be too little for a clock to advance: a source that waits for exactly that would
try again at the same moment, for ever."""


class Quota:
    """The quota of one thing, for many sources."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much was used, and when (monotonic)

    def left(self, source: str, now: float) -> bool:
        """Return whether the source may do it at this moment (monotonic)."""
        return self._level(source, now) + 1 <= self._burst

    def take(self, source: str, now: float) -> bool:
        """Return the same, and count it if so."""
        level = self._level(source, now)
        allowed = level + 1 <= self._burst
        self._used[source] = (level + 1 if allowed else level, now)
        self._used.move_to_end(source)
        if len(self._used) > SOURCES:
            self._used.popitem(last=False)
        return allowed

    def wait(self, source: str, now: float) -> float:
        """Return in how many seconds the source should try again: 0 if it may do it now, else `LEAST_WAIT` or more."""
        lacking = self._level(source, now) + 1 - self._burst
        return max(lacking / self._per_second, LEAST_WAIT) if lacking > 0 else 0.0

    def _level(self, source: str, now: float) -> float:
        used, since = self._used.get(source, (0.0, now))
        return max(used - (now - since) * self._per_second, 0.0)
