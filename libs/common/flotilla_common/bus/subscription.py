"""Subscriptions outside streams: live traffic, and incoming requests."""

import contextlib

import nats.errors
from nats.aio.client import Client
from nats.aio.subscription import Subscription

from flotilla_common.bus.connection import Connection, OnMsg, subscribe


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
