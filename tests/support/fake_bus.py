"""A bus in memory with the parts of JetStream that writers and mirrors depend on, and faults on demand."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from flotilla_common.bus.interface import (
    BusError,
    Delivery,
    Follow,
    Message,
    OnMessage,
    OnRequest,
    PublishRefused,
    StreamSpec,
    StreamState,
)
from flotilla_common.bus.subjects import AGAIN


class FakeStream:
    """A last-value stream."""

    def __init__(self, spec: StreamSpec, created: str) -> None:
        self.spec = spec
        self.created = created
        self.sequence = 0
        self.messages: dict[str, Message] = {}

    def lose_messages(self) -> None:
        """Lose them as a stream in the memory of three servers does, of which two die: it is still the same stream."""
        self.sequence = 0
        self.messages.clear()

    @property
    def first(self) -> int:
        """Return the sequence of the oldest message; the one after the last if the stream is empty."""
        return min((message.sequence for message in self.messages.values()), default=self.sequence + 1)


class FakeFollow:
    healthy = True

    def __init__(
        self, stream: str, filters: Sequence[str], on_message: OnMessage, on_reset: Callable[[], None]
    ) -> None:
        self.stream = stream
        self.filters = tuple(filters)
        self.on_message = on_message
        self.on_reset = on_reset

    def takes(self, subject: str) -> bool:
        """Report whether the subject matches one of the filters."""
        return any(matches(one, subject) for one in self.filters)

    async def stop(self) -> None:
        self.healthy = False


class FakeServer:
    healthy = True

    def __init__(self, subject_filter: str, queue: str, on_request: OnRequest) -> None:
        self.subject_filter = subject_filter
        self.queue = queue
        self.on_request = on_request

    async def stop(self) -> None:
        self.healthy = False


class FakeBus:
    """A bus in memory. Set `lose_acks` or `connected`, or call `wipe`, to inject faults."""

    def __init__(self) -> None:
        self.connected = True
        self.lose_acks = 0  # messages that are stored, but whose acknowledgement is lost
        self.drop = 0  # messages that are lost on the way
        self.streams: dict[str, FakeStream] = {}
        self.follows: list[FakeFollow] = []
        self.servers: list[FakeServer] = []
        self.deliveries: dict[tuple[str, str], tuple[str, ...]] = {}  # filters by stream and inbox
        self.readers: dict[tuple[str, str], str] = {}  # the inbox of each stream and reader
        self.handed_on: list[Message] = []
        self.renewed: list[str] = []  # subjects of messages that were stored again
        self.inbox = "_INBOX"  # prefix of reply subjects; an agent's contains its node
        self._incarnations = 0
        self._on_connected: list[Callable[[], None]] = []

    def wipe(self) -> None:
        """Lose all data, as a server does, and have clients connect again."""
        self.streams.clear()
        self.deliveries.clear()
        for callback in list(self._on_connected):
            callback()

    def on_connected(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._on_connected.append(callback)
        return lambda: self._on_connected.remove(callback)

    async def ensure_stream(self, spec: StreamSpec) -> None:
        self._incarnations += 1
        self.streams.setdefault(spec.name, FakeStream(spec, f"incarnation {self._incarnations}"))

    async def delete_stream(self, name: str) -> None:
        if not self.connected:
            raise BusError("not connected")
        self.streams.pop(name, None)

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> int:
        return await (await self.send(subject, data, headers))

    async def send(
        self,
        subject: str,
        data: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        expect_last_sequence: int | None = None,
        ttl_seconds: float | None = None,
    ) -> Awaitable[int]:
        if not self.connected:
            raise BusError("not connected")
        outcome = asyncio.get_running_loop().create_future()
        outcome.add_done_callback(lambda future: future.exception())
        try:
            outcome.set_result(self._store(subject, data, dict(headers or {}), expect_last_sequence))
        except (BusError, PublishRefused) as error:
            outcome.set_exception(error)
        return outcome

    def _store(self, subject: str, data: bytes, headers: dict[str, str], expected: int | None) -> int:
        stream = next((one for one in self.streams.values() if takes(one.spec, subject)), None)
        if stream is None:
            raise BusError("no stream")
        if self.drop:
            self.drop -= 1
            raise BusError("lost on the way")
        if expected is not None and expected != stream.sequence:
            raise PublishRefused(f"wrong last sequence: {stream.sequence}")
        stream.sequence += 1
        message = Message(subject=subject, data=data, headers=headers, sequence=stream.sequence)
        stream.messages.pop(subject, None)
        stream.messages[subject] = message
        for follow in self.follows:
            if follow.stream == stream.spec.name and follow.healthy and follow.takes(subject):
                follow.on_message(message)
        if self.lose_acks:
            self.lose_acks -= 1
            raise BusError("no acknowledgement")
        return stream.sequence

    def publish_soon(self, subject: str, data: bytes) -> None:
        """Do nothing: nothing subscribes to it."""

    async def stream_state(self, stream: str) -> StreamState | None:
        if not self.connected:
            raise BusError("not connected")
        found = self.streams.get(stream)
        return StreamState(found.sequence, found.created, found.first, len(found.messages)) if found else None

    async def stream_subjects(self, stream: str) -> set[str]:
        return set(self.streams[stream].messages)

    async def get_last(self, stream: str, subject: str) -> Message | None:
        found = self.streams.get(stream)
        if found is None:
            return None
        held = (one for one in found.messages.values() if matches(subject, one.subject))
        return max(held, key=lambda one: one.sequence, default=None)

    async def get_oldest(self, stream: str) -> Message | None:
        if not self.connected:
            raise BusError("not connected")
        held = self.streams[stream].messages.values() if stream in self.streams else ()
        return min(held, key=lambda one: one.sequence, default=None)

    async def renew(self, stream: str, message: Message) -> None:
        held = self.streams[stream].messages.get(message.subject)
        if held is None or held.sequence != message.sequence:
            raise PublishRefused("wrong last sequence")
        self.renewed.append(message.subject)
        await self.publish(message.subject, message.data, {**message.headers, AGAIN: "true"})

    async def remove(self, stream: str, message: Message) -> None:
        held = self.streams[stream].messages
        if held.get(message.subject) == message:
            del held[message.subject]

    async def history(self, stream: str, subject_filter: str, on_message: OnMessage) -> None:
        raise NotImplementedError

    async def follow(
        self, stream: str, subject_filters: Sequence[str], on_message: OnMessage, on_reset: Callable[[], None]
    ) -> Follow:
        follow = FakeFollow(stream, subject_filters, on_message, on_reset)
        self.follows.append(follow)
        self.replay(follow)
        return follow

    def replay(self, follow: FakeFollow) -> None:
        """Deliver what the stream holds, oldest first."""
        found = self.streams.get(follow.stream)
        for message in list(found.messages.values()) if found else []:
            if follow.takes(message.subject):
                follow.on_message(message)

    async def delivering(self, stream: str) -> set[str]:
        if not self.connected:
            raise BusError("not connected")
        return {inbox for name, inbox in self.deliveries if name == stream}

    async def deliver(
        self, stream: str, reader: str, subject_filters: Sequence[str], inbox: str, *, created: str = "", after: int = 0
    ) -> Delivery:
        """Record the delivery; nothing is sent."""
        found = self.streams.get(stream)
        if found is None or not self.connected:
            raise BusError("no such stream")
        self.deliveries.pop((stream, self.readers.get((stream, reader), "")), None)
        self.readers[stream, reader] = inbox
        self.deliveries[stream, inbox] = tuple(subject_filters)
        return Delivery(found.created, resumed=created == found.created)

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> Follow:
        raise NotImplementedError

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        if not self.connected:
            raise BusError("not connected")
        message = Message(subject=subject, data=data, reply=f"{self.inbox}.1")
        for server in self.servers:
            if server.healthy and matches(server.subject_filter, subject):
                answer = await server.on_request(message)
                if answer is not None:
                    return answer
        raise BusError(f"no responders on {subject}")

    async def forward(self, subject: str, data: bytes, reply: str) -> None:
        self.handed_on.append(Message(subject=subject, data=data, reply=reply))

    async def serve(self, subject_filter: str, queue: str, on_request: OnRequest) -> Follow:
        server = FakeServer(subject_filter, queue, on_request)
        self.servers.append(server)
        return server

    async def close(self) -> None:
        """Do nothing."""


def takes(spec: StreamSpec, subject: str) -> bool:
    """Report whether the stream stores the subject."""
    return any(matches(one, subject) for one in spec.subjects)


def matches(pattern: str, subject: str) -> bool:
    """Report whether a subject with wildcards matches the subject."""
    wanted, given = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(given) <= len(wanted):
            return False
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(one in ("*", other) for one, other in zip(wanted, given, strict=True))
