"""Spans of time that must hold although clocks differ between machines and may be set: measured once against the wall
clock, then counted on the monotonic one.

That one look at the wall clock may come just after it was set. So it is not trusted to say more than this process has
lived through since it saw that the span had not begun yet.
"""

from datetime import UTC, datetime

from flotilla_common.clock import Clock

Span = tuple[str, str]
"""What a span is remembered by: on whose behalf (a uid), and what it is."""

_NOTHING = datetime.fromtimestamp(0, UTC)


class Timing:
    """Grace periods and running times."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unbegun: dict[Span, float] = {}  # monotonic
        self._began: dict[Span, float] = {}  # monotonic

    def not_yet(self, span: Span) -> None:
        """It has not begun yet: it cannot have begun before now, whatever clocks say later."""
        self._unbegun[span] = self._clock.monotonic()

    def gone(self, span: Span, since: datetime, after: Span | None = None) -> float:
        """Seconds since it began, by the wall clock at `since` (at the epoch: that is not known). It began later than
        `after`, if that is given, was said not to have begun."""
        now = self._clock.monotonic()
        if span not in self._began:
            told = (self._clock.now() - since).total_seconds() if since > _NOTHING else 0.0
            most = now - self._unbegun.get(after or span, float("-inf"))
            self._began[span] = now - min(max(told, 0.0), most)
        return now - self._began[span]

    def left(self, span: Span, since: datetime, seconds: float) -> float:
        """What is left of a grace period that began at `since`; never more than all of it."""
        return max(seconds - self.gone(span, since), 0.0)

    def keep(self, causes: set[str]) -> None:
        """Forget everything on behalf of others: nobody asks any more."""
        for spans in (self._unbegun, self._began):
            for span in [span for span in spans if span[0] not in causes]:
                del spans[span]
