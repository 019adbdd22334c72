"""Consumers that push to an inbox, for readers without a right to JetStream: numbered messages, and heartbeats.

They belong to the server and live in its memory. While the inbox has no subscriber they wait, and after a while they
are removed.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from flotilla_common.bus import jetstream
from flotilla_common.bus.interface import Message
from tests.simulation.bus.stream import Stream, matches


class Post(Protocol):
    """The part of the server that delivers."""

    def deliver_live(self, message: Message, subject: str = "") -> bool:
        """Deliver a message to subscribers of the subject (by default its own). Returns False without any."""
        ...


class PushConsumer:
    """One delivery."""

    def __init__(
        self, post: Post, stream: Stream, reader: str, filters: Sequence[str], inbox: str, after: int | None
    ) -> None:
        """`after`: the last sequence that the reader has; None: start with the last message of every subject."""
        self.stream = stream
        self.reader = reader
        self._post = post
        self._filters = filters
        self.inbox = inbox
        self._number = 0
        self._cursor = 0 if after is None else after
        self._fresh = after is None
        self._deserted: float | None = None
        self._quiet = True  # nothing was sent since the last beat

    def go_on(self, now: float) -> None:
        """Send what is new."""
        if self._deserted is None:
            self._send(self._waiting(now), now)

    def heard(self, now: float) -> None:
        """Somebody listens, perhaps again: what waits is for him."""
        if self._deserted is not None:
            self._deserted = None
            self.go_on(now)

    def beat(self, now: float) -> bool:
        """Send a heartbeat if nothing else was sent. False when it is over."""
        if self._deserted is not None:
            return now - self._deserted < jetstream.DELIVERY_INACTIVE_SECONDS
        headers = {"Status": "100", "Nats-Last-Consumer": str(self._number)}
        quiet, self._quiet = self._quiet, True
        if quiet and not self._post.deliver_live(Message(subject=self.inbox, data=b"", headers=headers)):
            self._deserted = now
        return True

    def _waiting(self, now: float) -> list[Message]:
        if self._fresh:
            return list(self.stream.newest_of_each(self._filters, now))
        return list(self.stream.after(self._cursor, self._filters, now))

    def _send(self, messages: Sequence[Message], now: float) -> None:
        for position, message in enumerate(messages, 1):
            number, pending = self._number + 1, len(messages) - position
            reply = f"$JS.ACK.{self.stream.spec.name}.pushed.1.{message.sequence}.{number}.0.{pending}"
            if not self._post.deliver_live(msgspec.structs.replace(message, reply=reply), self.inbox):
                self._deserted = now
                return
            self._number, self._cursor, self._fresh, self._quiet = number, message.sequence, False, False
        self._fresh = False
        self._cursor = max(self._cursor, self.stream.last_sequence)

    def takes(self, message: Message) -> bool:
        """Report whether the message is for this reader."""
        return any(matches(one, message.subject) for one in self._filters)
