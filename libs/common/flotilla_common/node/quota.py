"""How often somebody may do something: so many at once, and then so many per second, each source for itself."""

from collections import OrderedDict

SOURCES = 10_000
"""Sources that are known at a time, those that were active last: more than a cluster has nodes."""


class Quota:
    """Of one thing, for many sources."""

    def __init__(self, burst: int, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much was used, and when (monotonic)

    def left(self, source: str, now: float) -> bool:
        """Whether the source may do it at this moment (monotonic)."""
        return self._level(source, now) + 1 <= self._burst

    def take(self, source: str, now: float) -> bool:
        """The same, and count it if so."""
        level = self._level(source, now)
        allowed = level + 1 <= self._burst
        self._used[source] = (level + 1 if allowed else level, now)
        self._used.move_to_end(source)
        if len(self._used) > SOURCES:
            self._used.popitem(last=False)
        return allowed

    def wait(self, source: str, now: float) -> float:
        """Seconds until the source may do it."""
        return max(self._level(source, now) + 1 - self._burst, 0.0) / self._per_second

    def _level(self, source: str, now: float) -> float:
        used, since = self._used.get(source, (0.0, now))
        return max(used - (now - since) * self._per_second, 0.0)
