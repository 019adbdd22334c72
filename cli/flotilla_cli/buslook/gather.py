"""Looks at the bus for some seconds, and asks it what it knows of itself."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from flotilla_cli.buslook.streams import Consumer, Stream, list_consumers, list_streams
from flotilla_cli.buslook.traffic import WATCHED, Share, Traffic
from flotilla_cli.heartbeats import listen
from flotilla_common.bus import subjects
from flotilla_common.bus.heartbeat import Heartbeat
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import Clock
from flotilla_common.installed import published

SIZE = "Nats-Msg-Size"
"""In which header the server tells the size of a payload that it leaves out."""

LARGEST = 10
BUSIEST = 8


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that said that it lives."""

    service: str = ""
    replica: str = ""
    version: str = ""
    waiting: Mapping[str, str] = {}
    shards: tuple[int, ...] = ()
    resources: tuple[str, ...] = ()  # that it publishes
    lag: float = 0  # seconds, of its mirror

    @property
    def name(self) -> str:
        """Service and replica."""
        return f"{self.service}/{self.replica}"


class Marked(msgspec.Struct, frozen=True, kw_only=True):
    """How far the watcher is with a resource, and when it said so."""

    resource: str
    marker: subjects.Marker
    at: datetime


class Large(msgspec.Struct, frozen=True):
    """An object that takes much room."""

    subject: str
    bytes: int


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """All that was seen. `before` are the streams as they were `seconds` earlier."""

    now: datetime
    seconds: float
    before: Sequence[Stream]
    streams: Sequence[Stream]
    consumers: Sequence[Consumer]
    markers: Mapping[str, Marked]  # by stream
    beats: Sequence[Beat]
    stream_bytes: Mapping[str, int]  # that each stream was given meanwhile
    busiest: Sequence[Share]
    largest: Sequence[Large]


async def look(bus: NatsBus, clock: Clock, seconds: float) -> Look:
    """Listen for so long. Raises BusError."""
    beats: dict[str, Beat] = {}
    traffic = Traffic()

    def hear(beat: Heartbeat) -> None:
        one = msgspec.convert(beat, Beat, from_attributes=True)
        beats[one.name] = one

    listening = [await listen(bus, hear)]
    listening += [await bus.subscribe(subject, traffic.hear) for subject in WATCHED]
    before, begun = await list_streams(bus), clock.monotonic()
    await clock.sleep(seconds)
    streams, passed = await list_streams(bus), clock.monotonic() - begun
    for one in listening:
        await one.stop()
    return Look(
        now=clock.now(),
        seconds=passed,
        before=before,
        streams=streams,
        consumers=[one for stream in streams for one in await list_consumers(bus, stream.name)],
        markers=await _markers(bus, streams),
        beats=[beats[name] for name in sorted(beats)],
        stream_bytes=traffic.bytes_by_stream,
        busiest=traffic.largest(BUSIEST),
        largest=await _largest(bus, streams),
    )


async def _markers(bus: NatsBus, streams: Sequence[Stream]) -> dict[str, Marked]:
    found: dict[str, Marked] = {}
    there = {stream.name for stream in streams}
    for resource in published():
        name = subjects.kube_stream(resource).name
        message = await bus.get_last(name, subjects.kube_marker(resource)) if name in there else None
        if message is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                marker = msgspec.json.decode(message.data, type=subjects.Marker)
                at = datetime.fromtimestamp(message.stored_at, UTC)
                found[name] = Marked(resource=resource.id, marker=marker, at=at)
    return found


async def _largest(bus: NatsBus, streams: Sequence[Stream]) -> list[Large]:
    """The largest objects. Only headers are read, so it costs little even where there are many."""
    found: list[Large] = []

    def take(message: Message) -> None:
        found.append(Large(message.subject, int(message.headers.get(SIZE, 0))))

    for stream in streams:
        if stream.name.startswith(("kube_", "node_")) and stream.messages > 1:
            await bus.history(stream.name, ">", take, headers_only=True)
    return sorted(found, key=lambda one: -one.bytes)[:LARGEST]
