"""When a marker counts.

A stream that is read from its start gives the last message of each subject, in the order in which they were published.
So the marker stands before all objects that have changed since, and means nothing until they have come.
"""

import msgspec

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message

_decode = msgspec.json.Decoder(subjects.Marker).decode


class Awaited:
    """The marker that waits for what stood behind it when it came."""

    def __init__(self) -> None:
        self._marker: subjects.Marker | None = None
        self._ahead = 0

    def note(self, message: Message) -> subjects.Marker:
        """A marker came. Only one that says that everything is there counts; where another LIST has begun since, it
        does not any more. Returns what it says. Raises DecodeError."""
        marker = _decode(message.data)
        self._marker = marker if marker.state == subjects.SYNCED else None
        self._ahead = message.pending + 1
        return marker

    def forget(self) -> None:
        """The stream is read again from its start."""
        self._marker = None

    def due(self, message: Message) -> subjects.Marker | None:
        """The marker that counts now, once. To be asked after every message, the marker itself included."""
        self._ahead -= 1
        if self._marker is None or (self._ahead > 0 and message.pending):
            return None
        marker, self._marker = self._marker, None
        return marker
