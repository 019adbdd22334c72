"""Pods that serve, by when they became Ready: which of them can be spared before they are available.

A pod that is Ready, but has not been so for minReadySeconds, counts as unavailable. It serves all the same, so an
update that took each such pod at once could take down all that there are. It may take one while as many others as must
serve have been Ready for at least as long.
"""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime


class Serving:
    """Counts the pods that serve, less those that a pass takes."""

    def __init__(self, since: Iterable[datetime], needed: int) -> None:
        self._since = sorted(since)
        self._needed = needed

    def can_spare(self, since: datetime) -> bool:
        """Return whether enough others have been Ready for at least as long as a pod that became so at this moment."""
        return bisect_right(self._since, since) - 1 >= self._needed

    def take(self, since: datetime) -> None:
        """Count no longer on a pod that became Ready at this moment."""
        at = bisect_right(self._since, since) - 1
        if at >= 0 and self._since[at] == since:
            del self._since[at]
