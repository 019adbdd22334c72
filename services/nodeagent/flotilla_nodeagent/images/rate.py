"""A token bucket: so many per second, with a burst."""

from flotilla_common.clock import Clock


class Rate:
    """It says how long to wait, and does not wait itself: by then there may be something newer to write."""

    def __init__(self, clock: Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._left = float(burst)
        self._at = clock.monotonic()

    def take(self) -> float:
        """0 when there is one left, which is then taken; else the seconds until there is."""
        now = self._clock.monotonic()
        self._left = min(self._left + (now - self._at) * self._per_second, float(self._burst))
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._per_second
