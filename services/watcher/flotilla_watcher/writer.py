"""The only writer of a stream (docs/adr/0003).

Every message carries the sequence that it must follow, and many are in flight at once: the server processes the
messages of a connection in order, so the chain holds without waiting for acknowledgements. A second writer breaks the
chain of the first, which then finds a foreign epoch in the marker and steps back. A lost message breaks it as well;
then what is not acknowledged is sent again, which is harmless where each subject keeps one message. But a stream with
more messages than we have stored may hold one that another writer had in flight when we took over, in place of a newer
one of ours: then everything is published again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, PublishRefused, StreamSpec, StreamState
from flotilla_common.clock import Clock

WINDOW = 512
"""Limit of messages in flight: enough to keep the server busy over a round trip, and little to send again."""

WINDOW_BYTES = 16 << 20
"""Limit of bytes in flight: two objects of the largest payload."""

MOST_SEQUENCES = 1_000_000
"""Limit of the distance from a stream's oldest message to its newest.

Each version of an object leaves a gap where the one before it was, and for each new reader the server walks through all
gaps while writers wait: a tenth of a second for a million (measured with nats-server 2.15). Published again, all
messages are at the end, without gaps.
"""

RETRY_SECONDS = 0.25
"""Pause between attempts to reach a bus that is away."""


class StreamLost(Exception):
    """The stream is gone, another one has its name, or it is too long: everything has to be published again."""


class Superseded(Exception):
    """Another publisher has taken the stream over, or our lease may have expired."""


class _Entry(msgspec.Struct):
    subject: str
    data: bytes
    headers: dict[str, str]
    ttl: float | None = None
    sent: Awaitable[int] | None = None


class StreamWriter:
    """Publishes into one stream in order, and detects when another writer has taken it over."""

    def __init__(
        self, *, bus: Bus, clock: Clock, spec: StreamSpec, marker_subject: str, fence: Callable[[], bool]
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._spec = spec
        self._marker_subject = marker_subject
        self._fence = fence
        self._pending: deque[_Entry] = deque()
        self._pending_bytes = 0
        self._created = ""
        self._first = 0  # the sequence of the oldest message, at the last check
        self._sent = 0  # the sequence of the last message sent, if all of them arrive
        self._acknowledged = 0
        self._epoch = ""  # ours, once its first marker is stored
        self._lock = asyncio.Lock()
        self._log = structlog.get_logger(stream=spec.name)

    async def open(self) -> set[str]:
        """Ensure that the stream exists and take it over; return the subjects in it. Raises BusError."""
        found = await self._bus.stream_state(self._spec.name)
        if found is not None and not found.last_sequence:
            await self._bus.delete_stream(self._spec.name)  # it may have had messages: see `_delete_if_emptied`
        await self._bus.ensure_stream(self._spec)
        state = await self._bus.stream_state(self._spec.name)
        if state is None:
            raise BusError(f"stream {self._spec.name} vanished")
        self._created, self._sent, self._acknowledged = state.created, state.last_sequence, state.last_sequence
        return await self._bus.stream_subjects(self._spec.name)

    async def begin(self, epoch: str, marker: bytes) -> None:
        """Store the first marker of an epoch: from now on other writers are refused."""
        self._epoch = ""
        await self.mark(epoch, marker)
        self._epoch = epoch

    async def put(self, subject: str, data: bytes, headers: dict[str, str], ttl: float | None = None) -> None:
        """Send; wait only while the window is full. Raises StreamLost, Superseded."""
        async with self._lock:
            await self._submit(_Entry(subject, data, headers, ttl))
            while len(self._pending) > WINDOW or self._pending_bytes > WINDOW_BYTES:
                await self._settle_first()

    async def mark(self, epoch: str, marker: bytes) -> None:
        """Store a marker once everything before it is stored. Raises StreamLost, Superseded.

        A marker must not be in flight together with what it vouches for: a rival that stores exactly one message has
        the first of ours refused, and the next one, which expects one message more, would fit again.
        """
        async with self._lock:
            await self._settle_all()
            await self._submit(_Entry(self._marker_subject, marker, {subjects.EPOCH: epoch}))
            await self._settle_all()

    async def flush(self) -> None:
        """Wait until everything is stored. Raises StreamLost, Superseded."""
        async with self._lock:
            await self._settle_all()

    async def check(self) -> None:
        """Check that the stream still exists, is ours, holds what we sent and no more, and is not too long.

        Raises StreamLost, Superseded.
        """
        await self.flush()
        async with self._lock:
            last = await self._inspect(flushed=True)
            self._expect_no_more_than(self._acknowledged, last)
            if last - self._first > MOST_SEQUENCES:
                raise StreamLost(f"stream {self._spec.name} is {last - self._first} sequences long, refilling it")

    async def _submit(self, entry: _Entry) -> None:
        self._pending.append(entry)
        self._pending_bytes += len(entry.data)
        if not await self._send(entry):
            await self._recover()

    async def _send(self, entry: _Entry) -> bool:
        if not self._fence():
            raise Superseded("the lease may have expired")
        try:
            entry.sent = await self._bus.send(
                entry.subject, entry.data, entry.headers, expect_last_sequence=self._sent, ttl_seconds=entry.ttl
            )
        except BusError as error:
            self._log.warning("cannot publish", error=str(error))
            return False
        self._sent += 1
        return True

    async def _settle_all(self) -> None:
        while self._pending:
            await self._settle_first()

    async def _settle_first(self) -> None:
        entry = self._pending[0]
        if entry.sent is None:
            await self._recover()
            return
        try:
            self._acknowledged = await entry.sent
        except (PublishRefused, BusError) as error:
            self._log.warning("a message was not stored", error=str(error), pending=len(self._pending))
            await self._recover()
        else:
            self._pending.popleft()
            self._pending_bytes -= len(entry.data)

    async def _recover(self) -> None:
        """Send everything pending again, as soon as the stream is confirmed to be ours."""
        while True:
            known = self._acknowledged + await self._await_all()
            last = await self._inspect()
            self._expect_no_more_than(known, last)
            self._sent = self._acknowledged = last
            for entry in self._pending:
                entry.sent = None
            for entry in self._pending:
                if not await self._send(entry):
                    break
            else:
                return
            await self._clock.sleep(RETRY_SECONDS)

    def _expect_no_more_than(self, known: int, last: int) -> None:
        if self._epoch and last > known:
            raise StreamLost(f"stream {self._spec.name} holds {last - known} messages more than this writer has stored")

    async def _await_all(self) -> int:
        """Await every answer, and return how many confirm that the message is stored."""
        # Nothing of ours may be in flight when the stream is checked.
        sent = [entry.sent for entry in self._pending if entry.sent is not None]
        answers = await asyncio.gather(*sent, return_exceptions=True)
        return sum(isinstance(answer, int) for answer in answers)

    async def _inspect(self, *, flushed: bool = False) -> int:
        """Return the stream's last sequence, if it is still our stream.

        `flushed` means that everything we sent is stored in its place. Then a stream that ends with it has no place for
        a rival's marker, which need not be read.
        """
        away = False
        while True:
            if not self._fence():
                raise Superseded("the lease may have expired")
            try:
                state = await self._bus.stream_state(self._spec.name)
                marker = None
                if self._epoch and not (flushed and state and state.last_sequence == self._acknowledged):
                    marker = await self._bus.get_last(self._spec.name, self._marker_subject)
                await self._delete_if_emptied(state)
            except BusError as error:
                if not away:
                    self._log.warning("the bus is disconnected, waiting for it", error=str(error))
                away = True
                await self._clock.sleep(RETRY_SECONDS)
                continue
            if state is None or self._has_lost_messages(state) or state.created != self._created:
                raise StreamLost(f"stream {self._spec.name} was lost")
            if marker is not None and marker.headers.get(subjects.EPOCH) != self._epoch:
                raise Superseded(f"epoch {marker.headers.get(subjects.EPOCH)} took the stream over")
            self._first = state.first_sequence
            return state.last_sequence

    def _has_lost_messages(self, state: StreamState) -> bool:
        return state.last_sequence < self._acknowledged

    async def _delete_if_emptied(self, state: StreamState | None) -> None:
        """Delete a stream that has lost messages and is still the same one, so that the next one is another.

        That happens to streams in memory when two of three servers end within seconds. Readers recognise a stream by
        the time of its creation, and would continue in the middle of one that was filled again: what they had not read
        would seem to be deleted.
        """
        if state is not None and state.created == self._created and self._has_lost_messages(state):
            await self._bus.delete_stream(self._spec.name)
