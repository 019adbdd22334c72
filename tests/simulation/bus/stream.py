"""A stream: messages with sequences, the newest of every subject or all of them within limits."""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from flotilla_common.bus.interface import Message, PublishRefused, StreamSpec, StreamState


class _Stored(msgspec.Struct):
    message: Message
    expires: float


class Stream:
    """The messages under one stream name. `now` is fake seconds; expired messages are removed on access."""

    def __init__(self, spec: StreamSpec, created: str) -> None:
        self.spec = spec
        self.created = created
        self.last_sequence = 0
        self._stored: dict[int, _Stored] = {}  # by sequence, in order
        self._newest: dict[str, int] = {}  # sequence by subject
        self._bytes = 0
        self._expiring = False

    @property
    def state(self) -> StreamState:
        """As `Bus.stream_state` returns it."""
        first = next(iter(self._stored), self.last_sequence + 1)
        return StreamState(self.last_sequence, self.created, first, len(self._stored))

    def store(
        self,
        subject: str,
        data: bytes,
        headers: Mapping[str, str],
        *,
        now: float,
        expected: int | None = None,
        ttl: float | None = None,
    ) -> Message:
        """Append a message. PublishRefused when the last sequence is not the expected one."""
        if expected is not None and expected != self.last_sequence:
            raise PublishRefused(f"wrong last sequence: {self.last_sequence}")
        self.last_sequence += 1
        message = Message(subject=subject, data=data, headers=headers, sequence=self.last_sequence)
        if self.spec.last_value and subject in self._newest:
            self._remove(self._newest[subject])
        age = self.spec.max_age_seconds or float("inf")
        self._stored[message.sequence] = _Stored(message, now + min(ttl or float("inf"), age))
        self._newest[subject] = message.sequence
        self._bytes += len(data)
        self._expiring = self._expiring or ttl is not None or self.spec.max_age_seconds > 0
        while 0 <= self.spec.max_bytes < self._bytes:
            self._remove(next(iter(self._stored)))
        return message

    def after(self, sequence: int, subject_filters: Sequence[str], now: float) -> Iterator[Message]:
        """Messages beyond a sequence, in order."""
        self._expire(now)
        filters = tuple(subject_filters)
        stored = list(itertools.takewhile(lambda one: one > sequence, reversed(self._stored)))
        for number in reversed(stored):
            message = self._stored[number].message
            if passes(filters, message.subject):
                yield message

    def newest_of_each(self, subject_filters: Sequence[str], now: float) -> Iterator[Message]:
        """Return the last message of every subject, in order of sequence."""
        return (one for one in self.after(0, subject_filters, now) if self._newest[one.subject] == one.sequence)

    def newest(self, subject: str, now: float) -> Message | None:
        """Return the last message of one subject, or among all that match a filter."""
        if subject.endswith((">", "*")):
            return max(self.after(0, (subject,), now), key=lambda one: one.sequence, default=None)
        self._expire(now)
        sequence = self._newest.get(subject)
        return None if sequence is None else self._stored[sequence].message

    def oldest(self, now: float) -> Message | None:
        """Return the message with the lowest sequence."""
        return next(self.after(0, (">",), now), None)

    def remove(self, sequence: int) -> None:
        """Remove a message, if it is still there."""
        if sequence in self._stored:
            self._remove(sequence)

    def lose_messages(self) -> None:
        """Begin again with the first sequence, as the same stream."""
        self.last_sequence = self._bytes = 0
        self._stored.clear()
        self._newest.clear()

    def subjects(self, now: float) -> set[str]:
        """All subjects that hold a message."""
        self._expire(now)
        return set(self._newest)

    def takes(self, subject: str) -> bool:
        """Report whether the stream stores a subject."""
        return any(matches(pattern, subject) for pattern in self.spec.subjects)

    def _expire(self, now: float) -> None:
        if self._expiring:
            for sequence in [number for number, stored in self._stored.items() if stored.expires <= now]:
                self._remove(sequence)

    def _remove(self, sequence: int) -> None:
        message = self._stored.pop(sequence).message
        self._bytes -= len(message.data)
        if self._newest.get(message.subject) == sequence:
            del self._newest[message.subject]


@functools.lru_cache(maxsize=1 << 16)
def passes(patterns: tuple[str, ...], subject: str) -> bool:
    """Report whether the subject matches one of the patterns."""
    return any(matches(one, subject) for one in patterns)


def matches(pattern: str, subject: str) -> bool:
    """NATS wildcards: `*` is one token, `>` is the rest (at least one token)."""
    if pattern in (">", subject):
        return True
    wanted, found = pattern.split("."), subject.split(".")
    for position, token in enumerate(wanted):
        if token == ">":
            return len(found) > position
        if position >= len(found) or token not in ("*", found[position]):
            return False
    return len(wanted) == len(found)
