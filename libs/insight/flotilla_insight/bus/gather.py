"""Watches the bus for some seconds: counts its traffic by kind, and reads the state of its streams."""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from flotilla_common.bus import subjects
from flotilla_common.bus.heartbeat import Heartbeat
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.pod_shards import plural_of
from flotilla_common.bus.streams import shards_of
from flotilla_common.clock import Clock
from flotilla_common.installed import published
from flotilla_insight.bus.streams import Consumer, Stream, list_consumers, list_streams
from flotilla_insight.published import listen

WATCHED = ("kube.v1.>", "node.v1.>", "act.v1.>", "why.v1.>")
"""The subjects of all streams but `decisions`, which repeats why.v1."""

SIZE = "Nats-Msg-Size"
"""Header with the size of a payload that the server leaves out."""

LARGEST = 10

BUSIEST = 8


class Share(msgspec.Struct, frozen=True):
    """Number and size of the messages about one kind in one namespace."""

    source: str  # kube, node, act or why
    namespace: str
    what: str
    messages: int
    bytes: int


class Traffic:
    """Counts messages."""

    def __init__(self) -> None:
        self._messages = Counter[tuple[str, str, str]]()
        self._bytes = Counter[tuple[str, str, str]]()
        self._streams = Counter[str]()

    def on_message(self, message: Message) -> None:
        """Count a message."""
        size = len(message.subject) + len(message.data) + sum(map(len, [*message.headers, *message.headers.values()]))
        key = _key(message.subject.split("."))
        self._messages[key] += 1
        self._bytes[key] += size
        self._streams[_stream(message.subject)] += size

    @property
    def bytes_by_stream(self) -> Mapping[str, int]:
        """Return the bytes published to each stream."""
        return self._streams

    def largest(self, most: int) -> list[Share]:
        """Return the kinds and namespaces with most bytes, the largest first."""
        return [Share(*key, self._messages[key], size) for key, size in self._bytes.most_common(most)]


def _key(tokens: list[str]) -> tuple[str, str, str]:
    """Return source, namespace, and kind."""
    match tokens:
        case ["kube", _, _, plural, namespace, *_]:
            return "kube", subjects.untoken(namespace), plural_of(plural)
        case ["node", _, _, plural, namespace, *_]:
            return "node", subjects.untoken(namespace), plural_of(plural)
        case ["act", _, service, plural, namespace, *_]:
            return "act", subjects.untoken(namespace), f"{plural} by {service}"
        case ["why", _, plural, namespace, *_]:
            return "why", subjects.untoken(namespace), plural
        case _:
            return tokens[0], "", "markers"


def _stream(subject: str) -> str:
    """Return the stream that stores the subject."""
    match subject.split("."):
        case ["kube", _, group, plural, *_]:
            return f"kube_{group}_{plural}"
        case ["node", _, _, plural, *_]:
            return f"node_{plural}"
        case [source, *_]:
            return source
        case _:
            return ""


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """A replica with a heartbeat."""

    service: str = ""
    replica: str = ""
    version: str = ""
    waiting: Mapping[str, str] = {}
    shards: tuple[int, ...] = ()
    resources: tuple[str, ...] = ()  # that it publishes
    lag: float = 0  # seconds, of its mirror

    @property
    def name(self) -> str:
        """Return service and replica."""
        return f"{self.service}/{self.replica}"


class Marked(msgspec.Struct, frozen=True, kw_only=True):
    """The watcher's marker of a resource, with its time of publication."""

    resource: str
    marker: subjects.Marker
    at: datetime


class Large(msgspec.Struct, frozen=True):
    """One of the largest objects."""

    subject: str
    bytes: int


class BusSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One observation. `before` has the streams as they were `seconds` earlier."""

    now: datetime
    seconds: float
    before: Sequence[Stream]
    streams: Sequence[Stream]
    consumers: Sequence[Consumer]
    markers: Mapping[str, Marked]  # by stream
    beats: Sequence[Beat]
    stream_bytes: Mapping[str, int]  # published to each stream meanwhile
    busiest: Sequence[Share]
    largest: Sequence[Large]


async def gather(bus: NatsBus, clock: Clock, seconds: float) -> BusSnapshot:
    """Observe the bus for this time. Raises BusError."""
    beats: dict[str, Beat] = {}
    traffic = Traffic()

    def on_heartbeat(beat: Heartbeat) -> None:
        one = msgspec.convert(beat, Beat, from_attributes=True)
        beats[one.name] = one

    listening = [await listen(bus, on_heartbeat)]
    listening += [await bus.subscribe(subject, traffic.on_message) for subject in WATCHED]
    before, begun = await list_streams(bus), clock.monotonic()
    await clock.sleep(seconds)
    streams, passed = await list_streams(bus), clock.monotonic() - begun
    for one in listening:
        await one.stop()
    return BusSnapshot(
        now=clock.now(),
        seconds=passed,
        before=before,
        streams=streams,
        consumers=[one for stream in streams for one in await list_consumers(bus, stream.name)],
        markers=await markers(bus, streams),
        beats=[beats[name] for name in sorted(beats)],
        stream_bytes=traffic.bytes_by_stream,
        busiest=traffic.largest(BUSIEST),
        largest=await _largest(bus, streams),
    )


async def markers(bus: NatsBus, streams: Sequence[Stream]) -> dict[str, Marked]:
    """Return the last markers by stream. Raises BusError."""
    found: dict[str, Marked] = {}
    there = {stream.name for stream in streams}
    for resource in [shard for one in published() for shard in await shards_of(bus, one)]:
        name = subjects.kube_stream(resource).name
        message = await bus.get_last(name, subjects.kube_marker(resource)) if name in there else None
        if message is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                marker = msgspec.json.decode(message.data, type=subjects.Marker)
                at = datetime.fromtimestamp(message.stored_at, UTC)
                found[name] = Marked(resource=resource.id, marker=marker, at=at)
    return found


async def _largest(bus: NatsBus, streams: Sequence[Stream]) -> list[Large]:
    """Return the largest objects. Only headers are read, which is cheap even for many objects."""
    found: list[Large] = []

    def take(message: Message) -> None:
        found.append(Large(message.subject, int(message.headers.get(SIZE, 0))))

    for stream in streams:
        if stream.name.startswith(("kube_", "node_")) and stream.messages > 1:
            await bus.history(stream.name, ">", take, headers_only=True)
    return sorted(found, key=lambda one: -one.bytes)[:LARGEST]
