"""The events of one resource, in order, from which watches read, until compaction.

A watch is a position in this log. A watch that falls behind the compaction ends, and gets 410 when it asks for the same
version again.
"""

import asyncio
from bisect import bisect_right

import msgspec

from flotilla_common.kube.interface import WatchEvent


class Event(msgspec.Struct, frozen=True):
    """One committed change as watches tell it."""

    revision: int
    at: float
    namespace: str
    name: str
    watch: WatchEvent


class EventLog:
    """Append-only, with a floor below which everything is forgotten."""

    def __init__(self) -> None:
        self.floor = 0
        """Events of this revision and before are gone."""
        self.closed = False
        """The resource is not served any more: all its watches end."""
        self._events: list[Event] = []
        self._forgotten = 0
        self._waiting: list[asyncio.Future[None]] = []

    def append(self, event: Event) -> None:
        """Add the newest event and wake the watches."""
        self._events.append(event)
        self.wake()

    def wake(self) -> None:
        """Wake all watches."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def position(self, revision: int) -> int:
        """Where the events after `revision` begin; `revision` is not below the floor."""
        return self._forgotten + bisect_right(self._events, revision, key=_revision)

    def read(self, position: int) -> list[Event] | None:
        """Everything from the position on; None when some of it is gone, or nothing will ever come."""
        start = position - self._forgotten
        if start < 0:
            return None
        events = self._events[start:]
        return None if self.closed and not events else events

    @property
    def end(self) -> int:
        """The position of the next event."""
        return self._forgotten + len(self._events)

    def compact(self, revision: int) -> None:
        """Forget the events of this revision and before."""
        count = bisect_right(self._events, revision, key=_revision)
        del self._events[:count]
        self._forgotten += count
        self.floor = max(self.floor, revision)
        self.wake()

    async def changed(self) -> None:
        """Wait until an event is appended or compacted."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future


def _revision(event: Event) -> int:
    return event.revision
