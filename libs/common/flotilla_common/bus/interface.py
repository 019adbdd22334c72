"""The bus as the rest of Flotilla sees it: a dozen methods, and no NATS type in sight.

`bus.nats` is the real one; the simulator brings its own. Payloads are bytes (readable JSON), headers are strings.
Nothing that matters is only here: the bus may lose, repeat, reorder or forget everything (DESIGN §1).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as delivered. `sequence` is its place in its stream and `stored_at` when that stored it (Unix time); 0
    outside streams."""

    subject: str
    data: bytes
    headers: Mapping[str, str] = {}
    reply: str = ""  # where the sender of a request wants the answer
    sequence: int = 0
    stored_at: float = 0
    pending: int = 0  # messages of the same follow that are still to come; 0 = caught up


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A stream as it should be. `last_value` keeps one message per subject; else age and bytes limit it. `rebuilt`: who
    writes it fills it again after a restart of the server, which therefore need not store it on disk. `republish`:
    what is stored under the first filter is published once more under the second."""

    name: str
    subjects: tuple[str, ...]
    last_value: bool
    rebuilt: bool = False
    max_age_seconds: float = 0
    max_bytes: int = -1
    republish: tuple[str, str] | None = None


class StreamState(msgspec.Struct, frozen=True):
    """How far a stream is, where its oldest message stands, and which stream it is: one that was lost and made again
    has another `created`."""

    last_sequence: int
    created: str
    first_sequence: int = 0


class Delivery(msgspec.Struct, frozen=True):
    """What is being delivered to an inbox."""

    created: str  # the stream, as in StreamState
    resumed: bool  # from where the reader was


class PublishRefused(Exception):
    """An expected-sequence header did not match: another publisher was here."""


class BusError(Exception):
    """The bus could not be reached or refused the request; whether it took effect is unknown."""


OnMessage = Callable[[Message], None]
OnRequest = Callable[[Message], Awaitable[bytes | None]]
"""Answers a request; None leaves it to somebody else."""


class Follow(Protocol):
    """A running ordered read of a stream: the last message of every subject, then everything new."""

    @property
    def healthy(self) -> bool:
        """False while the follow knows that it may have missed something."""
        ...

    async def stop(self) -> None: ...


class Bus(Protocol):
    """The operations that services use."""

    @property
    def connected(self) -> bool: ...

    def on_connected(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever a connection is made, the first time too; ends when what is returned is called."""
        ...

    async def ensure_stream(self, spec: StreamSpec) -> None:
        """Create the stream, or bring its limits up to date. Raises BusError when it cannot."""
        ...

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Store a message in the stream that owns the subject; returns its sequence. Raises BusError when it may not be
        stored."""
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
        """`publish` in two steps: returns when the message is on its way, behind those sent before it; awaiting the
        result waits for its sequence. With a TTL the stream forgets the message after that time.

        Raises BusError when the bus is down, or later no answer comes; the result also raises PublishRefused.
        """
        ...

    def publish_soon(self, subject: str, data: bytes) -> None:
        """Fire and forget, for act, why and heartbeats: never blocks, drops when the bus is down."""
        ...

    async def stream_state(self, stream: str) -> StreamState | None:
        """How far the stream is; None when it does not exist."""
        ...

    async def stream_subjects(self, stream: str) -> set[str]:
        """All subjects that hold a message."""
        ...

    async def get_last(self, stream: str, subject: str) -> Message | None:
        """The newest message of one subject, or of all that a filter takes in."""
        ...

    async def history(self, stream: str, subject_filter: str, on_message: OnMessage) -> None:
        """Hand over everything that the stream holds under the filter, oldest first, and return. A stream that does
        not exist holds nothing. Raises BusError when it cannot be read to its end."""
        ...

    async def follow(
        self, stream: str, subject_filter: str, on_message: OnMessage, on_reset: Callable[[], None]
    ) -> Follow:
        """Read `stream` in order from the last message per subject on; the filter `>` reads all of it. A stream that
        does not exist yet is waited for. `on_reset` is called before a re-read from the start (wiped stream, long
        absence): what follows is complete again. Neither callback may raise."""
        ...

    async def deliver(
        self, stream: str, reader: str, subject_filters: Sequence[str], inbox: str, *, created: str = "", after: int = 0
    ) -> Delivery:
        """Have the stream's messages sent to an inbox, for a reader that may not ask for it himself: those after the
        sequence `after` if the stream is still the one `created` then, else the last one of every subject and all that
        follow. It ends a while after nobody listens any more, and with the reader's next delivery: one reader, named by
        one token, has one. Raises BusError when the server refuses."""
        ...

    async def delivering(self, stream: str) -> set[str]:
        """The inboxes to which messages of the stream are sent (see `deliver`), without those to which nobody has
        listened for a while. Raises BusError when the server does not tell."""
        ...

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> Follow:
        """Plain subscription outside streams (live traffic)."""
        ...

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        """Ask a service. Raises BusError when nobody answers in time."""
        ...

    async def hand_on(self, subject: str, data: bytes, reply: str) -> None:
        """Send a request whose answers somebody else takes. Raises BusError when the bus is down."""
        ...

    async def serve(self, subject_filter: str, queue: str, on_request: OnRequest) -> Follow:
        """Answer requests, sharing them within `queue`; with an empty queue every server sees every request."""
        ...

    async def close(self) -> None: ...
