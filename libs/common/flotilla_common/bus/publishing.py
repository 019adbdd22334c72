"""Publishing into streams: messages leave in the order of the calls, acknowledgements come back as futures.

So a caller may have many messages on their way and still fence each of them with the sequence that it must follow.
"""

import asyncio
from collections.abc import Mapping
from itertools import count

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from flotilla_common.bus.connection import Connection, subscribe
from flotilla_common.bus.interface import BusError, PublishRefused
from flotilla_common.clock import Clock

ACK_SECONDS = 5.0
"""An acknowledgement that takes longer counts as lost: the message may or may not be stored."""

SWEEP_SECONDS = 1.0
"""How often overdue acknowledgements are looked for."""

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
"""Error codes: the stream's last sequence is not the expected one."""


class _Error(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _Ack(msgspec.Struct):
    seq: int = 0
    error: _Error | None = None


_decode_ack = msgspec.json.Decoder(_Ack).decode


class Publisher:
    """Sends messages with a reply subject of its own, and matches the replies."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._client: Client | None = None
        self._prefix = ""
        self._numbers = count(1)
        self._waiting: dict[str, tuple[asyncio.Future[int], float]] = {}
        self._sweeper: asyncio.Task[None] | None = None

    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> asyncio.Future[int]:
        """Send, and return the future of the sequence. BusError at once when the bus is down or the message too big."""
        client = self._connection.now()
        if client is not self._client:
            await self._adopt(client)
        token = str(next(self._numbers))
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieved)
        self._waiting[token] = (future, self._clock.monotonic() + ACK_SECONDS)
        try:
            await client.publish(subject, data, reply=f"{self._prefix}{token}", headers=dict(headers) or None)
        except (nats.errors.Error, OSError) as error:
            del self._waiting[token]
            raise BusError(f"publish to {subject}: {str(error) or type(error).__name__}") from error
        return future

    async def close(self) -> None:
        """Everything still unanswered fails."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self._fail_all("the bus is closed")

    async def _adopt(self, client: Client) -> None:
        self._fail_all("the connection was replaced")
        prefix = client.new_inbox() + "."
        await subscribe(client, prefix + "*", self._on_ack)
        self._prefix, self._client = prefix, client
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def _on_ack(self, message: Msg) -> None:
        waiting = self._waiting.pop(message.subject[len(self._prefix) :], None)
        if waiting is None or waiting[0].done():
            return
        future = waiting[0]
        if not message.data:
            future.set_exception(BusError("no stream takes this subject"))
            return
        ack = _decode_ack(message.data)
        if ack.error is None:
            future.set_result(ack.seq)
        elif ack.error.err_code in WRONG_LAST_SEQUENCE:
            future.set_exception(PublishRefused(ack.error.description))
        else:
            future.set_exception(BusError(ack.error.description))

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_SECONDS)
            now = self._clock.monotonic()
            overdue = [token for token, (_, deadline) in self._waiting.items() if now >= deadline]
            for token in overdue:
                _fail(self._waiting.pop(token)[0], f"no acknowledgement within {ACK_SECONDS:g} s")

    def _fail_all(self, why: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for future, _ in waiting.values():
            _fail(future, why)


def _fail(future: asyncio.Future[int], why: str) -> None:
    if not future.done():
        future.set_exception(BusError(why))


def _retrieved(future: asyncio.Future[int]) -> None:
    """A caller that was cancelled need not look at the outcome."""
    if not future.cancelled():
        future.exception()
