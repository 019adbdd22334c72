"""A lossless ordered read of a stream: the last message of every subject, then everything new.

We supervise the consumer on the server, because an ordered consumer can stall silently. Four things are checked: the
consumer's own sequence has no gap, heartbeats come, their numbers agree with ours, and the stream is still the one that
we read (same creation time, not shorter). When a check fails, a new consumer continues after the last message, or from
the start when the stream is another one or we were away for too long; then `on_reset` is called first.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from flotilla_common.bus.connection import Connection, subscribe
from flotilla_common.bus.interface import BusError, Message, OnMessage
from flotilla_common.bus.jetstream import (
    LAST_PER_SUBJECT,
    First,
    JetStream,
    StreamInfo,
    StreamMissing,
    consumer_config,
    filters,
)
from flotilla_common.clock import Clock

HEARTBEAT_SECONDS = 5.0
"""Time without messages after which the server sends a heartbeat.

It is longer than the interval of the watcher's markers: a consumer of objects gets heartbeats only when there are none.
An installation has a hundred consumers, and their heartbeats were a third of what an idle server did.
"""

SILENCE_SECONDS = 12.0
"""Time without any message after which the consumer counts as dead."""

RETRY_SECONDS = 1.0
"""Pause between two attempts to read the stream."""

INFO_SECONDS = 30.0
"""Interval at which the stream is compared with the one that we read."""

RESUME_SECONDS = 60.0
"""Absence after which we read from the start: tombstones of deletes may have expired meanwhile."""

INACTIVE_SECONDS = 30.0
"""Time after which the server drops a consumer without subscribers."""


class OrderedFollow:
    """A running `Bus.follow`, until stopped; a missing stream or an unreachable bus is a state, not an error."""

    def __init__(
        self,
        connection: Connection,
        jetstream: JetStream,
        clock: Clock,
        stream: str,
        subject_filters: Sequence[str],
        on_message: OnMessage,
        on_reset: Callable[[], None],
        deliver: First = LAST_PER_SUBJECT,
        headers_only: bool = False,
        on_stop: Callable[["OrderedFollow"], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._jetstream = jetstream
        self._clock = clock
        self._stream = stream
        self._filters = tuple(subject_filters)
        self._on_message = on_message
        self._on_reset = on_reset
        self._deliver = deliver  # where in the stream the first read starts
        self._headers_only = headers_only
        self._on_stop = on_stop
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._consumer = ""
        self._reading = 0  # counts consumers; messages of earlier ones are ignored
        self._attached = False
        self._expected = 1  # the consumer's next sequence
        self._sequence = 0  # the stream's sequence of the last message that we passed on
        self._created = ""
        self._last_message = clock.monotonic()
        self._checked = 0.0
        self._wake = asyncio.Event()
        self._log = structlog.get_logger(stream=stream)
        self._task = asyncio.get_running_loop().create_task(self._supervise())
        connection.on_resumed(self._check_again)

    @property
    def healthy(self) -> bool:
        return self._attached and self._connection.connected

    async def stop(self) -> None:
        self._on_stop(self)
        self._connection.off_resumed(self._check_again)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._drop()

    def _check_again(self) -> None:
        """Check the consumer now: while the connection was away, it may have been lost, and messages with it."""
        self._attached = False
        self._wake.set()

    async def _supervise(self) -> None:
        while True:
            try:
                await self._tend()
            except StreamMissing:
                self._attached = False
            except (BusError, nats.errors.Error, OSError) as error:
                self._attached = False
                self._log.warning("cannot follow", error=str(error) or type(error).__name__)
            except Exception:  # noqa: BLE001 - the loop must survive; the owner of an unhealthy follow may fall back
                self._attached = False
                self._log.exception("cannot follow")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._until_next_check()):
                    await self._wake.wait()
            self._wake.clear()

    def _until_next_check(self) -> float:
        """Return the seconds until the consumer may be dead or the stream another one."""
        if not self.healthy:
            return RETRY_SECONDS
        due = min(self._last_message + SILENCE_SECONDS, self._checked + INFO_SECONDS)
        return max(due - self._clock.monotonic(), 0.0)

    async def _tend(self) -> None:
        if not self._connection.connected:
            return
        client = self._connection.now()
        now = self._clock.monotonic()
        if self._attached and client is self._client and now - self._last_message < SILENCE_SECONDS:
            if now - self._checked < INFO_SECONDS:
                return
            info = await self._jetstream.stream_info(self._stream)
            self._checked = now
            if self._same(info):
                return
        await self._attach(client)

    def _same(self, info: StreamInfo) -> bool:
        return info.created == self._created and info.state.last_seq >= self._sequence

    async def _attach(self, client: Client) -> None:
        """Create a new consumer, after the last message or from the start."""
        self._attached = False
        await self._drop()
        info = await self._jetstream.stream_info(self._stream)
        away = self._clock.monotonic() - self._last_message
        resume = bool(self._created) and self._same(info) and away < RESUME_SECONDS
        if self._created and not resume:
            self._log.info("reading the stream again", was=self._created, now=info.created, away=round(away, 1))
            self._on_reset()
        if not resume:
            self._sequence = 0
        self._created = info.created
        self._expected = 1
        self._client = client
        self._reading += 1
        inbox, receive = client.new_inbox(), partial(self._receive, self._reading)
        self._subscription = await subscribe(client, inbox, receive)
        reading = self._reading
        config = consumer_config(
            inbox,
            first=self._deliver,
            after=self._sequence if resume else None,
            heartbeat=HEARTBEAT_SECONDS,
            inactive=INACTIVE_SECONDS,
            **filters(self._filters),
            flow_control=True,
            headers_only=self._headers_only,
            description=self._connection.name,  # lets operators see which client a consumer belongs to
        )
        self._consumer = await self._jetstream.create_consumer(self._stream, config)
        self._last_message = self._checked = self._clock.monotonic()
        self._attached = reading == self._reading  # unless it has lost messages already

    async def _drop(self) -> None:
        """Remove the old consumer; the server would drop it later by itself."""
        subscription, self._subscription = self._subscription, None
        client, consumer = self._client, self._consumer
        self._client, self._consumer = None, ""
        if subscription is None or client is None or not client.is_connected:
            return
        with contextlib.suppress(nats.errors.Error, BusError, OSError):
            await subscription.unsubscribe()
            if consumer:
                await self._jetstream.delete_consumer(self._stream, consumer)

    async def _receive(self, reading: int, message: Msg) -> None:
        """Pass a message on; if its handler fails, read it again with a new consumer, and be unhealthy until then."""
        if reading != self._reading:
            return
        try:
            await self._pass_on(message)
        except Exception:  # noqa: BLE001 - any failure leads to a new read
            self._log.exception("cannot handle a message", subject=message.subject)
            self._reading += 1
            self._attached = False
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._wake.set)

    async def _pass_on(self, message: Msg) -> None:
        headers = message.headers
        if headers is not None and "Status" in headers:
            await self._control(message, headers)
            return
        fields = message.reply.split(".")
        shift = len(fields) - 9 if len(fields) >= 11 else 0  # with a domain the subject has more parts in front
        stream_sequence, sequence = int(fields[5 + shift]), int(fields[6 + shift])
        stored_at, pending = int(fields[7 + shift]) / 1e9, int(fields[8 + shift])
        self._last_message = self._clock.monotonic()
        if sequence != self._expected:
            self._lost(f"message {sequence} arrived instead of {self._expected}")
            return
        self._on_message(
            Message(
                subject=message.subject,
                data=message.data,
                headers=headers or {},
                sequence=stream_sequence,
                stored_at=stored_at,
                pending=pending,
            )
        )
        self._expected = sequence + 1
        self._sequence = stream_sequence

    async def _control(self, message: Msg, headers: dict[str, str]) -> None:
        """Answer a heartbeat or a flow-control request, in order among the messages."""
        if headers["Status"] != "100":
            self._lost(f"status {headers['Status']} {headers.get('Description', '')}")
            return
        self._last_message = self._clock.monotonic()
        answer = message.reply or headers.get("Nats-Consumer-Stalled", "")
        if answer:
            await self._connection.now().publish(answer)
        last = headers.get("Nats-Last-Consumer")
        if last is not None and int(last) != self._expected - 1:
            self._lost(f"the server has sent {last} messages, {self._expected - 1} arrived")

    def _lost(self, why: str) -> None:
        self._log.warning("the consumer lost messages, creating a new one", why=why)
        self._reading += 1
        self._attached = False
        self._wake.set()
