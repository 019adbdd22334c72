"""Streams and their consumers, as JetStream describes them."""

from datetime import datetime
from typing import TypeVar

import msgspec

from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.subjects import inbox_node

SECONDS = 5.0
"""Deadline of one request."""


class _Config(msgspec.Struct):
    name: str = ""
    max_bytes: int = -1
    max_age: int = 0  # nanoseconds


class _State(msgspec.Struct):
    messages: int = 0
    bytes: int = 0
    first_seq: int = 0
    last_seq: int = 0
    first_ts: datetime | None = None
    last_ts: datetime | None = None
    num_subjects: int = 0


class _Stream(msgspec.Struct):
    created: datetime
    config: _Config
    state: _State


class _Streams(msgspec.Struct):
    streams: list[_Stream] | None = None
    total: int = 0


class _Target(msgspec.Struct):
    deliver_subject: str = ""
    description: str = ""


class _Delivered(msgspec.Struct):
    stream_seq: int = 0


class ConsumerInfo(msgspec.Struct):
    """A consumer, as the server describes it."""

    name: str
    config: _Target = msgspec.field(default_factory=_Target)
    delivered: _Delivered = msgspec.field(default_factory=_Delivered)
    num_pending: int = 0
    num_ack_pending: int = 0


class _Consumers(msgspec.Struct):
    consumers: list[ConsumerInfo] | None = None
    total: int = 0


Page = TypeVar("Page", _Streams, _Consumers)


class Stream(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A stream as it is now. `bytes` of at most `max_bytes` (-1: no limit); ages in seconds (0: no limit)."""

    name: str
    created: datetime
    messages: int
    bytes: int
    max_bytes: int
    max_age: float
    first_sequence: int
    last_sequence: int
    first_at: datetime | None
    last_at: datetime | None

    @property
    def begins(self) -> datetime:
        """Return the time since which it holds everything published."""
        return self.first_at if self.first_at and self.first_sequence > 1 else self.created


class Consumer(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A consumer of a stream, with its progress."""

    stream: str
    name: str
    reader: str  # service and replica, or the node
    pending: int  # messages not sent yet
    unacknowledged: int
    delivered: int  # the stream's sequence


async def list_streams(bus: NatsBus) -> list[Stream]:
    """Return all streams by name. Raises BusError."""
    found: list[_Stream] = []
    while True:
        page = await _ask(bus, "STREAM.LIST", len(found), _Streams)
        found += page.streams or ()
        if not page.streams or len(found) >= page.total:
            return sorted(map(_stream, found), key=lambda stream: stream.name)


async def list_consumers(bus: NatsBus, stream: str) -> list[Consumer]:
    """Return all consumers of a stream. Raises BusError."""
    return [_consumer(stream, one) for one in await consumers_of(bus, stream)]


async def consumers_of(bus: NatsBus, stream: str) -> list[ConsumerInfo]:
    """Return all consumers of a stream, as the server describes them. Raises BusError."""
    found: list[ConsumerInfo] = []
    while True:
        page = await _ask(bus, f"CONSUMER.LIST.{stream}", len(found), _Consumers)
        found += page.consumers or ()
        if not page.consumers or len(found) >= page.total:
            return found


async def _ask(bus: NatsBus, verb: str, offset: int, page: type[Page]) -> Page:
    reply = await bus.request(f"{bus.api}.{verb}", msgspec.json.encode({"offset": offset}), SECONDS)
    try:
        return msgspec.json.decode(reply, type=page)
    except msgspec.MsgspecError as error:
        raise BusError(f"{verb}: {error}") from error


def _stream(info: _Stream) -> Stream:
    state = info.state
    return Stream(
        name=info.config.name,
        created=info.created,
        messages=state.messages,
        bytes=state.bytes,
        max_bytes=info.config.max_bytes,
        max_age=info.config.max_age / 1e9,
        first_sequence=state.first_seq,
        last_sequence=state.last_seq,
        first_at=state.first_ts if state.last_seq else None,
        last_at=state.last_ts if state.last_seq else None,
    )


def _consumer(stream: str, info: ConsumerInfo) -> Consumer:
    target = info.config.deliver_subject
    node, (_, _, rest) = inbox_node(target), target.partition("_INBOX.")
    return Consumer(
        stream=stream,
        name=info.name,
        reader=f"node {node}" if node else info.config.description or rest.partition(".")[0] or "?",
        pending=info.num_pending,
        unacknowledged=info.num_ack_pending,
        delivered=info.delivered.stream_seq,
    )
