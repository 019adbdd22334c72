"""Measures elapsed times independent of differing and changing wall clocks.

The wall clock is read once, when a time is first requested; from then on the monotonic clock counts. The wall clock may
have been set just before that. So the process's own observations limit it: if the measured thing had not started at
some moment, no more time can have passed than since that moment.
"""

from datetime import UTC, datetime

from flotilla_common.clock import Clock

Timer = tuple[str, str]
"""The name of an elapsed time: the uid of its object, and a name within the object."""

_UNKNOWN = datetime.fromtimestamp(0, UTC)


class Timing:
    """Elapsed times of grace periods and running containers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen_not_started: dict[Timer, float] = {}  # monotonic
        self._started: dict[Timer, float] = {}  # monotonic

    def not_started(self, timer: Timer) -> None:
        """Record that the timed thing has not started at this moment."""
        self._seen_not_started[timer] = self._clock.monotonic()

    def elapsed(self, timer: Timer, started: datetime, *, bound: Timer | None = None) -> float:
        """Return the seconds since it started, by the wall clock at `started`.

        An unknown start (the epoch) is counted from now. At most the seconds since `not_started` was called for
        `bound`, by default for the timer itself.
        """
        now = self._clock.monotonic()
        if timer not in self._started:
            by_wall_clock = (self._clock.now() - started).total_seconds() if started > _UNKNOWN else 0.0
            most = now - self._seen_not_started.get(bound or timer, float("-inf"))
            self._started[timer] = now - min(max(by_wall_clock, 0.0), most)
        return now - self._started[timer]

    def remaining(self, timer: Timer, started: datetime, seconds: float) -> float:
        """Return the rest of a period of `seconds` that started at `started`."""
        return max(seconds - self.elapsed(timer, started), 0.0)

    def keep(self, uids: set[str]) -> None:
        """Drop the timers of all other objects."""
        for times in (self._seen_not_started, self._started):
            for timer in [timer for timer in times if timer[0] not in uids]:
                del times[timer]
