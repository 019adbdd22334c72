"""Counts serving pods by the time when they became Ready, to decide which can go before they are available.

A pod that is Ready, but not yet for minReadySeconds, counts as unavailable. It serves all the same, so an update that
took all such pods at once could take down all there are. It may take one while as many others as must serve have been
Ready for at least as long.
"""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime


class Serving:
    """The serving pods, without the ones that a pass takes."""

    def __init__(self, since: Iterable[datetime], needed: int) -> None:
        self._since = sorted(since)
        self._needed = needed

    def can_spare(self, since: datetime) -> bool:
        """Return whether enough others have been Ready for at least as long as a pod that became Ready at `since`."""
        return bisect_right(self._since, since) - 1 >= self._needed

    def take(self, since: datetime) -> None:
        """Remove a pod that became Ready at `since` from the count."""
        at = bisect_right(self._since, since) - 1
        if at >= 0 and self._since[at] == since:
            del self._since[at]
