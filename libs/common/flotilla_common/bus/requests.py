"""Sends requests and matches their replies; subscriptions outside streams: live traffic, and incoming requests.

Messages leave in the order of the calls, replies come back as futures. nats-py has this too, but its waiting can
swallow a cancellation (`asyncio.wait_for` before Python 3.12), and a service that cannot be cancelled cannot be
stopped. So replies are matched here: one inbox, one number per request.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeVar

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from flotilla_common.bus.connection import Connection, OnMsg, subscribe
from flotilla_common.bus.interface import BusError, PublishRefused
from flotilla_common.clock import Clock

SWEEP_SECONDS = 0.5
"""Interval at which overdue replies are failed: the precision of timeouts."""

NO_RESPONDERS = "503"

R = TypeVar("R")


class NoResponders(BusError):
    """No subscriber for the subject of a request."""


class _Waiting(msgspec.Struct):
    future: asyncio.Future[Any]
    convert: Callable[[Msg], Any]
    deadline: float
    what: str


class Requests:
    """A sender of requests through one connection, which matches the replies."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._client: Client | None = None
        self._prefix = ""
        self._numbers = count(1)
        self._waiting: dict[str, _Waiting] = {}
        self._sweeper: asyncio.Task[None] | None = None
        connection.on_broken(self._give_up)

    async def send(
        self,
        subject: str,
        data: bytes,
        convert: Callable[[Msg], R],
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
    ) -> asyncio.Future[R]:
        """Send a request and return the future of its reply, converted; errors of `convert` are set on the future.

        Raises BusError when there is no connection or the message is too big. The future raises it when no reply comes
        in time, and at once when the connection breaks: then it is unknown whether the server got the message.
        """
        client = self._connection.now()
        if client is not self._client:
            await self._adopt(client)
        token = str(next(self._numbers))
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieved)
        self._waiting[token] = _Waiting(future, convert, self._clock.monotonic() + timeout, subject)
        made = dict(headers) if headers else None
        try:
            await client.publish(subject, data, reply=self._prefix + token, headers=made)
        except (nats.errors.Error, OSError) as error:
            self._waiting.pop(token, None)
            raise BusError(f"{subject}: {str(error) or type(error).__name__}") from error
        return future

    async def close(self) -> None:
        """Stop, and fail all requests that wait for a reply."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self._fail_all("the bus is closed")

    async def _adopt(self, client: Client) -> None:
        self._fail_all("the connection was replaced")
        self._prefix, self._client = client.new_inbox() + ".", client
        await subscribe(client, self._prefix + "*", self._on_reply)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def _on_reply(self, message: Msg) -> None:
        waiting = self._waiting.pop(message.subject[len(self._prefix) :], None)
        if waiting is None or waiting.future.done():
            return
        headers = message.headers
        if headers is not None and headers.get("Status") == NO_RESPONDERS:
            waiting.future.set_exception(NoResponders(f"no responders on {waiting.what}"))
            return
        try:
            result = waiting.convert(message)
        except (BusError, PublishRefused, msgspec.MsgspecError) as error:
            waiting.future.set_exception(error)
        else:
            waiting.future.set_result(result)

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_SECONDS)
            now = self._clock.monotonic()
            for token in [token for token, waiting in self._waiting.items() if now >= waiting.deadline]:
                waiting = self._waiting.pop(token)
                _fail(waiting.future, f"{waiting.what}: no reply in time")

    def _give_up(self) -> None:
        """Fail all open requests: after the connection broke, no replies come for them."""
        self._fail_all("the connection broke before the reply came")

    def _fail_all(self, why: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            _fail(one.future, why)


def _fail(future: asyncio.Future[Any], why: str) -> None:
    if not future.done():
        future.set_exception(BusError(why))


def _retrieved(future: asyncio.Future[Any]) -> None:
    """Retrieve the exception, so that asyncio does not report it when the caller was cancelled."""
    if not future.cancelled():
        future.exception()


class LiveSubscription:
    """A plain subscription that is made again on every new client."""

    def __init__(
        self, connection: Connection, subject: str, queue: str, receive: OnMsg, most: int, most_bytes: int
    ) -> None:
        """Configure the subscription; at most `most` messages and `most_bytes` bytes wait (0: unlimited)."""
        self._most, self._most_bytes = most, most_bytes
        self._connection = connection
        self._subject = subject
        self._queue = queue
        self._receive = receive
        self._subscription: Subscription | None = None

    @property
    def healthy(self) -> bool:
        return self._subscription is not None and self._connection.connected

    async def subscribe(self, client: Client) -> None:
        """Subscribe on this client."""
        self._subscription = await subscribe(
            client, self._subject, self._receive, self._queue, most=self._most, most_bytes=self._most_bytes
        )

    async def stop(self) -> None:
        self._connection.detach(self.subscribe)
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()
