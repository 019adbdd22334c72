"""The bus on NATS.

It connects when first used and retries without end; while there is no connection, publishing fails at once and
following waits.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import nats.errors
import structlog
from nats.aio.msg import Msg
from prometheus_client import Counter

from flotilla_common.bus.connection import Connection, OnMsg
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
from flotilla_common.bus.jetstream import (
    API,
    LAST_PER_SUBJECT,
    First,
    JetStream,
    StreamMissing,
    acknowledged,
    delivery_config,
    renewal_headers,
)
from flotilla_common.bus.ordered import OrderedFollow
from flotilla_common.bus.requests import LiveSubscription, NoResponders, Requests
from flotilla_common.clock import Clock, SystemClock

DEFAULT_SERVER = "nats://127.0.0.1:4222"

READY_SECONDS = 5.0
"""Time that an operation which cannot fail at once waits for the connection."""

ACK_SECONDS = 5.0
"""Time after which an acknowledgement counts as lost: the message may or may not be stored."""

HISTORY_SECONDS = 30.0
"""Timeout for reading a stream's whole history: the record of writes holds at most 256 MiB, some seconds' worth."""

SOON_LIMIT = 10_000
"""Most fire-and-forget messages that wait for the socket: the acts of one large rollout; more are dropped."""

SOON_SECONDS = 0.1
"""Interval at which fire-and-forget messages are sent in batches: each batch wakes the server."""

DROPPED = Counter("flotilla_bus_dropped_total", "Acts, reasons and heartbeats that were not sent.")

FAREWELL_SECONDS = 1.0
"""Time that a closing client may spend on sending what waits: the record of the last writes."""

REQUESTS_AT_ONCE = 2000
"""Requests of one subscription that are handled at a time; more are refused."""

REQUESTS_WAITING, REQUEST_BYTES_WAITING = 10_000, 64 << 20
"""Most requests, and bytes of them, that wait on one subscription; more are dropped, and the senders retry.

It bounds the memory that a flood of requests can fill.
"""

REQUEST_ERROR = "error"
"""The header with the error text when a request's handler failed."""


class BusSettings(Protocol):
    """The settings that select the bus."""

    @property
    def nats_url(self) -> str: ...

    @property
    def nats_creds(self) -> str: ...

    @property
    def nats_ca(self) -> str: ...

    @property
    def allow_open_bus(self) -> bool: ...

    @property
    def bus_copies(self) -> int: ...


class NatsBus:
    """The `Bus` on NATS."""

    def __init__(
        self, settings: BusSettings, *, name: str, clock: Clock | None = None, inbox_prefix: str = "", api: str = API
    ) -> None:
        """Configure the bus; `api` is the prefix of JetStream's API, for users without access to the standard one."""
        servers = [url.strip() for url in (settings.nats_url or DEFAULT_SERVER).split(",") if url.strip()]
        self._clock = clock or SystemClock()
        self._connection = Connection(
            servers,
            name=name,
            creds=settings.nats_creds,
            authority=settings.nats_ca,
            allow_open=settings.allow_open_bus,
            clock=self._clock,
            inbox_prefix=inbox_prefix,
        )
        self._replies = Requests(self._connection, self._clock)
        self._stream = JetStream(self._replies, settings.bus_copies, api)
        self.api = api
        self._follows: list[Follow] = []
        self._soon: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(SOON_LIMIT)
        self._sender: asyncio.Task[None] | None = None
        self._log = structlog.get_logger(bus=name)

    @property
    def connected(self) -> bool:
        return self._connection.connected

    @property
    def trouble(self) -> str:
        """The reason why there is no connection, if known."""
        return self._connection.trouble

    async def refused(self) -> None:
        """Wait forever, or raise OpenBusError when the bus accepts clients without credentials against our settings."""
        await self._connection.refused()

    def on_connected(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._connection.on_resumed(callback)
        return lambda: self._connection.off_resumed(callback)

    async def ensure_stream(self, spec: StreamSpec) -> None:
        await self._connection.ready(READY_SECONDS)
        await self._stream.ensure_stream(spec)

    async def delete_stream(self, name: str) -> None:
        await self._stream.delete_stream(name)

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
        made = dict(headers or {})
        if expect_last_sequence is not None:
            made["Nats-Expected-Last-Sequence"] = str(expect_last_sequence)
        if ttl_seconds is not None:
            made["Nats-TTL"] = str(max(int(ttl_seconds), 1))
        return await self._replies.send(subject, data, acknowledged, timeout=ACK_SECONDS, headers=made)

    def publish_soon(self, subject: str, data: bytes) -> None:
        if not self._connection.connected:
            DROPPED.inc()
            return
        try:
            self._soon.put_nowait((subject, data))
        except asyncio.QueueFull:
            DROPPED.inc()
            return
        if self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_soon())

    async def stream_state(self, stream: str) -> StreamState | None:
        try:
            info = await self._stream.stream_info(stream)
        except StreamMissing:
            return None
        return StreamState(info.state.last_seq, info.created, info.state.first_seq, info.state.messages)

    async def stream_subjects(self, stream: str) -> set[str]:
        return await self._stream.subjects(stream)

    async def get_last(self, stream: str, subject: str) -> Message | None:
        return await self._stream.last_message(stream, subject)

    async def get_oldest(self, stream: str) -> Message | None:
        return await self._stream.oldest_message(stream)

    async def renew(self, stream: str, message: Message) -> None:
        await self.publish(message.subject, message.data, renewal_headers(stream, message))

    async def remove(self, stream: str, message: Message) -> None:
        await self._stream.delete_message(stream, message.sequence)

    async def history(
        self,
        stream: str,
        subject_filter: str,
        on_message: OnMessage,
        *,
        since: datetime | None = None,
        headers_only: bool = False,
    ) -> None:
        """Read history as `Bus.history` does, optionally only what was stored `since` a time.

        `headers_only` omits payloads and gives their size in `Nats-Msg-Size`.
        """
        held: list[Message] = []
        await self.scan(stream, subject_filter, held.append, held.clear, since=since, headers_only=headers_only)
        for message in held:
            on_message(message)

    async def scan(
        self,
        stream: str,
        subject_filter: str,
        on_message: OnMessage,
        on_reset: Callable[[], None],
        *,
        since: datetime | None = None,
        headers_only: bool = False,
    ) -> None:
        """Read history, and pass each message on when it comes, so that the reader decides what is kept in memory.

        `on_reset` is called before a re-read from the start. Neither callback may raise.
        """
        if not await self._stream.holds(stream, subject_filter, since):
            return
        complete = asyncio.Event()

        def receive(message: Message) -> None:
            on_message(message)
            if not message.pending:
                complete.set()

        read = self._ordered(stream, (subject_filter,), receive, on_reset, since or "all", headers_only=headers_only)
        try:
            async with asyncio.timeout(HISTORY_SECONDS):
                await complete.wait()
        except TimeoutError as error:
            raise BusError(f"{stream} was not read to its end within {HISTORY_SECONDS:g} s") from error
        finally:
            await read.stop()

    async def follow(
        self, stream: str, subject_filters: Sequence[str], on_message: OnMessage, on_reset: Callable[[], None]
    ) -> Follow:
        follow = self._ordered(stream, subject_filters, on_message, on_reset, LAST_PER_SUBJECT)
        self._follows.append(follow)
        return follow

    async def follow_since(self, stream: str, since: datetime, on_message: OnMessage) -> bool:
        """Read what the stream holds from a time on, and all that follows, without gaps or repetition, until closed.

        Returns whether the stream holds anything yet; the last of those messages has no `pending`. Raises BusError.
        """
        self._follows.append(self._ordered(stream, (">",), on_message, lambda: None, since))
        return await self._stream.holds(stream, ">", since)

    def _ordered(
        self,
        stream: str,
        subject_filters: Sequence[str],
        on_message: OnMessage,
        on_reset: Callable[[], None],
        first: First,
        *,
        headers_only: bool = False,
    ) -> OrderedFollow:
        return OrderedFollow(
            self._connection,
            self._stream,
            self._clock,
            stream,
            subject_filters,
            on_message,
            on_reset,
            first,
            headers_only=headers_only,
            on_stop=self._drop,
        )

    def _drop(self, follow: OrderedFollow) -> None:
        """Forget a follow that ends: those of mirrors come and go with what they need."""
        if follow in self._follows:
            self._follows.remove(follow)

    async def deliver(
        self, stream: str, reader: str, subject_filters: Sequence[str], inbox: str, *, created: str = "", after: int = 0
    ) -> Delivery:
        info = await self._stream.stream_info(stream)
        resume = bool(created) and info.created == created and info.state.last_seq >= after
        await self._stream.replace_consumer(
            stream, reader, delivery_config(subject_filters, inbox, after if resume else None)
        )
        return Delivery(info.created, resume)

    async def delivering(self, stream: str) -> set[str]:
        return await self._stream.inboxes(stream)

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> Follow:
        async def receive(message: Msg) -> None:
            on_message(_plain(message))

        return await self._live(subject_filter, "", receive)

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        def read(message: Msg) -> bytes:
            if message.headers and REQUEST_ERROR in message.headers:
                raise BusError(message.headers[REQUEST_ERROR])
            return message.data

        try:
            return await (await self._replies.send(subject, data, read, timeout=timeout))
        except NoResponders as error:
            raise BusError(f"no responders on {subject}") from error

    async def forward(self, subject: str, data: bytes, reply: str) -> None:
        try:
            await self._connection.now().publish(subject, data, reply=reply)
        except (nats.errors.Error, OSError) as error:
            raise BusError(str(error) or type(error).__name__) from error

    async def serve(self, subject_filter: str, queue: str, on_request: OnRequest) -> Follow:
        running: set[asyncio.Task[None]] = set()

        async def receive(message: Msg) -> None:
            if len(running) >= REQUESTS_AT_ONCE:
                await self._reply(message, b"", {REQUEST_ERROR: f"{REQUESTS_AT_ONCE} requests are in progress already"})
                return
            task = asyncio.get_running_loop().create_task(self._answer(message, on_request))
            running.add(task)
            task.add_done_callback(running.discard)

        return await self._live(subject_filter, queue, receive, REQUESTS_WAITING, REQUEST_BYTES_WAITING)

    async def close(self) -> None:
        for follow in list(self._follows):
            await follow.stop()
        if self._sender is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL_SECONDS):
                    await self._soon.join()
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        await self._replies.close()
        await self._connection.close()

    async def _live(
        self, subject_filter: str, queue: str, receive: OnMsg, most: int = 0, most_bytes: int = 0
    ) -> Follow:
        follow = LiveSubscription(self._connection, subject_filter, queue, receive, most, most_bytes)
        await self._connection.attach(follow.subscribe)
        self._follows.append(follow)
        return follow

    async def _answer(self, message: Msg, on_request: OnRequest) -> None:
        try:
            reply, headers = await on_request(_plain(message)), None
        except Exception as error:  # noqa: BLE001 - any error of a handler is returned to the requester
            self._log.exception("request failed", subject=message.subject)
            reply, headers = b"", {REQUEST_ERROR: (str(error) or type(error).__name__).replace("\n", " ")}
        if reply is not None:
            await self._reply(message, reply, headers)

    async def _reply(self, message: Msg, reply: bytes, headers: dict[str, str] | None) -> None:
        if message.reply:
            with contextlib.suppress(BusError, nats.errors.Error, OSError):
                await self._connection.now().publish(message.reply, reply, headers=headers)

    async def _send_soon(self) -> None:
        while True:
            subject, data = await self._soon.get()
            try:
                await self._connection.now().publish(subject, data)
            except (BusError, nats.errors.Error, OSError):
                DROPPED.inc()
            except Exception:  # noqa: BLE001 - the messages behind it still have to be sent
                DROPPED.inc()
                self._log.exception("cannot send a message", subject=subject)
            finally:
                self._soon.task_done()
            if self._soon.empty():
                await self._clock.sleep(SOON_SECONDS)


def _plain(message: Msg) -> Message:
    return Message(subject=message.subject, data=message.data, headers=message.headers or {}, reply=message.reply or "")
