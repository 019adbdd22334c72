"""The events of a stream that were not sent yet, and the last ones that were, for a browser that comes back.

Memory is limited: where a reader is too slow, or away for too long, the oldest events go, and it gets whole pages.
"""

from collections import deque

MAX_EVENTS = 64
MAX_BYTES = 1 << 20


class Outbox:
    """Numbered events, of which the oldest go when there are too many."""

    def __init__(self, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self.last = 0
        """The number of the newest event."""
        self._events: deque[bytes] = deque()
        self._bytes = 0
        self._max_events, self._max_bytes = max_events, max_bytes

    def append(self, event: bytes) -> None:
        """Add an event, whose number is then `last`."""
        self.last += 1
        self._events.append(event)
        self._bytes += len(event)
        while self._events and (len(self._events) > self._max_events or self._bytes > self._max_bytes):
            self._bytes -= len(self._events.popleft())

    def after(self, number: int) -> list[tuple[int, bytes]] | None:
        """Return the events after this one with their numbers; None if some of them are gone."""
        first = self.last - len(self._events) + 1
        if not first - 1 <= number <= self.last:
            return None
        return [(first + place, event) for place, event in enumerate(self._events) if first + place > number]

    def clear(self) -> None:
        """Drop all events; every reader gets whole pages."""
        self._events.clear()
        self._bytes = 0
        self.last += 1
