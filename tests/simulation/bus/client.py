"""The `Bus` of one simulated process: the same methods, outcomes and times as the real one on NATS (bus.nats)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context

from flotilla_common.bus import jetstream
from flotilla_common.bus.interface import (
    BusError,
    Delivery,
    Follow,
    Message,
    OnMessage,
    OnRequest,
    StreamSpec,
    StreamState,
)
from flotilla_common.bus.nats import HISTORY_SECONDS, READY_SECONDS
from flotilla_common.clock import Clock
from tests.simulation.bus.connection import Connection
from tests.simulation.bus.faults import Way
from tests.simulation.bus.follow import SimulatedFollow
from tests.simulation.bus.live import LiveFollow, Requests
from tests.simulation.bus.server import MAX_PAYLOAD, Server
from tests.simulation.loop import SimulatedLoop


class SimulatedBus:
    """The bus as the process `name` has it; `context` is that of its steps."""

    def __init__(
        self,
        loop: SimulatedLoop,
        server: Server,
        name: str,
        clock: Clock,
        context: Context,
        *,
        inbox_prefix: str = "_INBOX",
    ) -> None:
        self._loop = loop
        self._server = server
        self._clock = clock
        self._connection = Connection(loop, server, name, context)
        self._requests = Requests(loop, server, self._connection, inbox_prefix)
        self._follows: list[SimulatedFollow | LiveFollow] = []

    @property
    def connected(self) -> bool:
        self._connection.begin()
        return self._connection.connected

    @property
    def asking(self) -> bool:
        """Report whether a reply is outstanding."""
        return self._requests.waiting

    @property
    def connection(self) -> Connection:
        """Return the connection, for faults that break it."""
        return self._connection

    def slept(self, seconds: float) -> None:
        """Handle a pause of the process (SIGSTOP, SIGCONT)."""
        for follow in self._follows:
            if isinstance(follow, SimulatedFollow):
                follow.slept(seconds)

    def on_connected(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._connection.on_made(callback)
        return lambda: self._connection.off_made(callback)

    async def ensure_stream(self, spec: StreamSpec) -> None:
        await self._ready()
        await self._connection.ask(f"ensure {spec.name}", lambda: self._server.ensure_stream(spec))

    async def delete_stream(self, name: str) -> None:
        await self._connection.ask(f"delete {name}", lambda: self._server.lose_stream(name))

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
        if len(data) > MAX_PAYLOAD:
            raise BusError(f"{subject}: maximum payload exceeded")
        if " " in subject:
            raise BusError(f"{subject}: invalid subject")
        made = dict(headers or {})
        return self._connection.ask(
            subject,
            lambda: self._server.publish(subject, data, made, expect_last_sequence, ttl_seconds),
            way=Way.PUBLISH,
        )

    def publish_soon(self, subject: str, data: bytes) -> None:
        if self.connected:
            message = Message(subject=subject, data=data)
            self._connection.post(Way.SOON, subject, lambda: self._server.accept(message))

    async def stream_state(self, stream: str) -> StreamState | None:
        return await self._connection.ask(f"info {stream}", lambda: self._server.state(stream))

    async def stream_subjects(self, stream: str) -> set[str]:
        return await self._connection.ask(
            f"subjects {stream}", lambda: self._server.stream(stream).subjects(self._loop.time())
        )

    async def get_last(self, stream: str, subject: str) -> Message | None:
        return await self._connection.ask(f"last {subject}", lambda: self._server.newest(stream, subject))

    async def get_oldest(self, stream: str) -> Message | None:
        return await self._connection.ask(f"oldest {stream}", lambda: self._server.oldest(stream))

    async def renew(self, stream: str, message: Message) -> None:
        headers = jetstream.renewal_headers(stream, message)
        await self._connection.ask(
            message.subject, lambda: self._server.renew(stream, message, headers), way=Way.PUBLISH
        )

    async def remove(self, stream: str, message: Message) -> None:
        await self._connection.ask(
            f"remove {message.subject}", lambda: self._server.stream(stream).remove(message.sequence)
        )

    async def history(self, stream: str, subject_filter: str, on_message: OnMessage) -> None:
        if not await self._connection.ask(f"holds {stream}", lambda: self._server.holds(stream, subject_filter)):
            return
        held: list[Message] = []
        complete = asyncio.Event()

        def receive(message: Message) -> None:
            held.append(message)
            if not message.pending:
                complete.set()

        read = self._read(stream, (subject_filter,), receive, held.clear, everything=True)
        try:
            async with asyncio.timeout(HISTORY_SECONDS):
                await complete.wait()
        except TimeoutError as error:
            raise BusError(f"{stream} was not read to its end within {HISTORY_SECONDS:g} s") from error
        finally:
            await read.stop()
        for message in held:
            on_message(message)

    async def follow(
        self, stream: str, subject_filters: Sequence[str], on_message: OnMessage, on_reset: Callable[[], None]
    ) -> Follow:
        follow = self._read(stream, subject_filters, on_message, on_reset)
        self._follows.append(follow)
        return follow

    async def deliver(
        self, stream: str, reader: str, subject_filters: Sequence[str], inbox: str, *, created: str = "", after: int = 0
    ) -> Delivery:
        return await self._connection.ask(
            f"deliver {stream}", lambda: self._server.push(stream, reader, subject_filters, inbox, created, after)
        )

    async def delivering(self, stream: str) -> set[str]:
        return await self._connection.ask(f"consumers of {stream}", lambda: self._server.inboxes(stream))

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> Follow:
        return self._live(subject_filter, "", on_message)

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        return await self._requests.ask(subject, data, timeout)

    async def forward(self, subject: str, data: bytes, reply: str) -> None:
        message = Message(subject=subject, data=data, reply=reply)
        self._connection.post(Way.SOON, subject, lambda: self._server.accept(message))

    async def serve(self, subject_filter: str, queue: str, on_request: OnRequest) -> Follow:
        return self._live(subject_filter, queue, self._requests.server(on_request))

    async def close(self) -> None:
        for follow in self._follows:
            await follow.stop()
        self._connection.end()

    def sever(self) -> None:
        """Close the sockets of a dead process, as the kernel does."""
        self._connection.end()

    async def _ready(self) -> None:
        self._connection.begin()
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._connection.ready.wait()
        except TimeoutError as error:
            raise BusError(f"no connection to the bus within {READY_SECONDS:g} s") from error

    def _read(
        self,
        stream: str,
        subject_filters: Sequence[str],
        on_message: OnMessage,
        on_reset: Callable[[], None],
        *,
        everything: bool = False,
    ) -> SimulatedFollow:
        self._connection.begin()
        return SimulatedFollow(
            self._loop,
            self._server,
            self._connection,
            stream,
            subject_filters,
            on_message,
            on_reset,
            everything=everything,
        )

    def _live(self, subject_filter: str, queue: str, receive: OnMessage) -> Follow:
        self._connection.begin()
        follow = LiveFollow(self._server, self._connection, subject_filter, queue, receive)
        self._follows.append(follow)
        return follow
