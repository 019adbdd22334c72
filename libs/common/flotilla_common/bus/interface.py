"""The bus as the rest of Flotilla sees it: a dozen methods, and no NATS types.

`bus.nats` is the real one; the simulator brings its own. Payloads are bytes (readable JSON), headers are strings. The
bus is never the only copy of anything that matters: it may lose, repeat, reorder or drop all (architecture.md §1).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as delivered.

    `sequence` is its position in its stream, `stored_at` when it was stored (Unix time); both are 0 outside streams.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str] = {}
    reply: str = ""  # the reply subject of a request
    sequence: int = 0
    stored_at: float = 0
    pending: int = 0  # messages of the same follow that are still to come; 0 = caught up


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The desired configuration of a stream.

    `last_value`: it keeps one message per subject; otherwise age and bytes limit it. `rebuilt`: its publisher fills it
    again after a restart of the server, so it need not be stored on disk. `republish`: messages stored under the first
    filter are published again under the second.
    """

    name: str
    subjects: tuple[str, ...]
    last_value: bool
    rebuilt: bool = False
    max_age_seconds: float = 0
    max_bytes: int = -1
    republish: tuple[str, str] | None = None

    @property
    def leaves_gaps(self) -> bool:
        """Report whether replaced messages leave gaps on disk; without a limit per subject only the oldest go."""
        return self.last_value and not self.rebuilt


class StreamState(msgspec.Struct, frozen=True):
    """The first and last sequence of a stream, and `created`, which differs when it was lost and created again."""

    last_sequence: int
    created: str
    first_sequence: int = 0
    messages: int = 0

    @property
    def gaps(self) -> int:
        """Return how many sequences between the first and the last have no message any more."""
        return max(self.last_sequence - self.first_sequence + 1 - self.messages, 0) if self.messages else 0


class Delivery(msgspec.Struct, frozen=True):
    """The state of a delivery to an inbox."""

    created: str  # creation time of the stream, as in StreamState
    resumed: bool  # whether it continues after the reader's last message


class PublishRefused(Exception):
    """The expected-sequence header did not match: another publisher wrote first."""


class BusError(Exception):
    """The bus could not be reached or refused the request; whether the request took effect is unknown."""


OnMessage = Callable[[Message], None]
OnRequest = Callable[[Message], Awaitable[bytes | None]]
"""Handles a request and returns the reply; None leaves the request to another handler."""


class Follow(Protocol):
    """A running ordered read of a stream: the last message of every subject, then everything new."""

    @property
    def healthy(self) -> bool:
        """Report whether the follow is sure to have missed nothing."""
        ...

    async def stop(self) -> None: ...


class Bus(Protocol):
    """The bus operations that services use."""

    @property
    def connected(self) -> bool: ...

    def on_connected(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever a connection is made, including the first. Calling the returned function unsubscribes."""
        ...

    async def ensure_stream(self, spec: StreamSpec) -> None:
        """Create the stream, or update its configuration. Raises BusError on failure."""
        ...

    async def delete_stream(self, name: str) -> None:
        """Delete a stream, if it exists: one that is created afterwards is another one. Raises BusError on failure."""
        ...

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Store a message in the stream that owns the subject, and return its sequence. Raises BusError on failure."""
        ...

    async def send(
        self,
        subject: str,
        data: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        expect_last_sequence: int | None = None,
        ttl_seconds: float | None = None,
    ) -> Awaitable[int]:
        """Send a message to be stored, behind those sent before, and return an awaitable of its sequence.

        This is `publish` in two steps. With a TTL the stream drops the message after that time. Raises BusError when
        the bus is down; the awaitable raises BusError when no acknowledgement comes, and PublishRefused.
        """
        ...

    def publish_soon(self, subject: str, data: bytes) -> None:
        """Send a message without waiting, for act, why and heartbeats: never blocks, drops it when the bus is down."""
        ...

    async def stream_state(self, stream: str) -> StreamState | None:
        """Return the stream's state; None when it does not exist."""
        ...

    async def stream_subjects(self, stream: str) -> set[str]:
        """Return all subjects that hold a message."""
        ...

    async def get_last(self, stream: str, subject: str) -> Message | None:
        """Return the newest message of one subject, or among all that match a filter."""
        ...

    async def get_oldest(self, stream: str) -> Message | None:
        """Return the message with the lowest sequence."""
        ...

    async def renew(self, stream: str, message: Message) -> None:
        """Store a message of a last-value stream again, as its newest, with the header `again`.

        It is stored in this stream only, not in those that it is republished to. Raises PublishRefused if its subject
        has a newer message, BusError on failure.
        """
        ...

    async def remove(self, stream: str, message: Message) -> None:
        """Remove this message, and none that replaced it. Raises BusError on failure."""
        ...

    async def history(self, stream: str, subject_filter: str, on_message: OnMessage) -> None:
        """Pass everything that the stream holds under the filter to `on_message`, oldest first, and return.

        A stream that does not exist holds nothing. Raises BusError when the stream cannot be read to its end.
        """
        ...

    async def follow(
        self, stream: str, subject_filters: Sequence[str], on_message: OnMessage, on_reset: Callable[[], None]
    ) -> Follow:
        """Read `stream` in order, starting with the last message per subject; the filter `>` matches all.

        No subject may match two of the filters.

        A stream that does not exist yet is waited for. `on_reset` is called before a re-read from the start (wiped
        stream, long absence), which is complete again. Neither callback may raise.
        """
        ...

    async def deliver(
        self, stream: str, reader: str, subject_filters: Sequence[str], inbox: str, *, created: str = "", after: int = 0
    ) -> Delivery:
        """Have the stream's messages sent to an inbox, on behalf of a reader that may not create consumers.

        If the stream is still the one `created` then, delivery starts after the sequence `after`; otherwise with the
        last message of every subject. It ends a while after the last subscriber has left, or when the reader's next
        delivery begins: a reader, named by one token, has one delivery. Raises BusError when the server refuses.
        """
        ...

    async def delivering(self, stream: str) -> set[str]:
        """Return the inboxes of the stream's active deliveries (see `deliver`). Raises BusError on failure.

        Inboxes that had no subscriber for a while are not included.
        """
        ...

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> Follow:
        """Subscribe outside streams (live traffic)."""
        ...

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        """Send a request to a service and return the reply. Raises BusError when none comes in time."""
        ...

    async def forward(self, subject: str, data: bytes, reply: str) -> None:
        """Send a request whose replies go to another subscriber's `reply`. Raises BusError when the bus is down."""
        ...

    async def serve(self, subject_filter: str, queue: str, on_request: OnRequest) -> Follow:
        """Answer requests, sharing them within `queue`; with an empty queue every server receives every request."""
        ...

    async def close(self) -> None: ...
