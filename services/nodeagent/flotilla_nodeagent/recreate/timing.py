"""Spans of time that must hold although clocks differ between machines and may be set: measured once against the wall
clock, then counted on the monotonic one."""

from datetime import datetime

from flotilla_common.clock import Clock


class Timing:
    """Grace periods and running times, remembered by what they belong to."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._since: dict[str, float] = {}

    def grace_left(self, key: str, since: datetime, seconds: float) -> float:
        """What is left of a grace period that began at `since`; never more than all of it."""
        now = self._clock.monotonic()
        if key not in self._until:
            gone = (self._clock.now() - since).total_seconds()
            self._until[key] = now + min(max(seconds - gone, 0.0), seconds)
        return max(self._until[key] - now, 0.0)

    def running(self, key: str, started_at: float) -> float:
        """For how long something that started at this moment (seconds since the epoch) has been running."""
        now = self._clock.monotonic()
        if key not in self._since:
            gone = self._clock.now().timestamp() - started_at if started_at > 0 else 0.0
            self._since[key] = now - max(gone, 0.0)
        return now - self._since[key]

    def forget(self, key: str) -> None:
        """Nobody asks any more."""
        self._until.pop(key, None)
        self._since.pop(key, None)
