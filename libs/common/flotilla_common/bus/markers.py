"""Decides when a marker takes effect.

A stream that is read from its start gives the last message of each subject, in the order in which they were published.
So the marker comes before all objects that have changed since, and is valid only after they have been read.
"""

import msgspec

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message

_decode = msgspec.json.Decoder(subjects.Marker).decode


class MarkerGate:
    """The last marker, held back until all messages that were in the stream when it came have been read."""

    def __init__(self) -> None:
        self._marker: subjects.Marker | None = None
        self._ahead = 0

    def note(self, message: Message) -> subjects.Marker:
        """Record a marker and return it. Raises DecodeError.

        Only a complete one takes effect later; any other cancels the one before, as a new LIST has begun.
        """
        marker = _decode(message.data)
        self._marker = marker if marker.complete else None
        self._ahead = message.pending + 1
        return marker

    def forget(self) -> None:
        """Drop the marker, because the stream is read again from its start."""
        self._marker = None

    def due(self, message: Message) -> subjects.Marker | None:
        """Return the marker if it takes effect now, once. Call it after every message, the marker itself included."""
        self._ahead -= 1
        if self._marker is None or (self._ahead > 0 and message.pending):
            return None
        marker, self._marker = self._marker, None
        return marker
