"""Turns an observation of the bus into its display: a row for each stream, and findings in words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_insight.bus.gather import Beat, BusSnapshot, Large, Marked, Share
from flotilla_insight.bus.streams import Consumer, Stream
from flotilla_insight.durations import span

STALE_SECONDS = 15.0
"""Limit of a marker's age: a watcher repeats it every five seconds."""

BEHIND = 200
"""Pending messages that are no finding: a burst, which the consumer works off meanwhile."""

FULL = 0.95
"""Share of its bytes from which on a stream soon drops messages before their time."""

DAY = 86400


class Row(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A stream. Rates per second; `marker` and `publisher` only for streams that a watcher fills."""

    name: str
    messages: int
    bytes: int
    max_bytes: int
    last_seconds: float | None
    message_rate: float
    byte_rate: float
    readers: int
    pending: int
    state: str = ""
    epoch: str = ""
    marker_seconds: float | None = None
    publisher: str = ""

    @property
    def quiet(self) -> bool:
        """Report whether it holds nothing but its marker."""
        return self.messages <= 1 and not self.pending


class View(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """All that is shown."""

    at: datetime
    seconds: float
    findings: list[str]
    streams: list[Row]
    behind: list[Consumer]
    replicas: Sequence[Beat]
    busiest: Sequence[Share]
    largest: Sequence[Large]


def view(snapshot: BusSnapshot, services: Iterable[str]) -> View:
    """Return the display. `services`: those that must be present."""
    rows = [_row(snapshot, stream) for stream in snapshot.streams]
    behind = sorted(
        (one for one in snapshot.consumers if one.pending or one.unacknowledged), key=lambda one: -one.pending
    )
    return View(
        at=snapshot.now,
        seconds=round(snapshot.seconds, 1),
        findings=[
            *_silent(snapshot.beats, services),
            *_stale(rows),
            *_late(behind),
            *_full(snapshot.streams, snapshot.now),
            *_waiting(snapshot.beats),
        ],
        streams=rows,
        behind=behind,
        replicas=snapshot.beats,
        busiest=snapshot.busiest,
        largest=snapshot.largest,
    )


def _row(snapshot: BusSnapshot, stream: Stream) -> Row:
    before: Mapping[str, int] = {one.name: one.last_sequence for one in snapshot.before}
    readers = [one for one in snapshot.consumers if one.stream == stream.name]
    marked = snapshot.markers.get(stream.name)
    row = Row(
        name=stream.name,
        messages=stream.messages,
        bytes=stream.bytes,
        max_bytes=stream.max_bytes,
        last_seconds=(snapshot.now - stream.last_at).total_seconds() if stream.last_at else None,
        message_rate=(stream.last_sequence - before.get(stream.name, stream.last_sequence)) / snapshot.seconds,
        byte_rate=snapshot.stream_bytes.get(stream.name, 0) / snapshot.seconds,
        readers=len(readers),
        pending=max((one.pending for one in readers), default=0),
    )
    return _marked(row, marked, snapshot) if marked else row


def _marked(row: Row, marked: Marked, snapshot: BusSnapshot) -> Row:
    publishers = [beat.name for beat in snapshot.beats if marked.resource in beat.resources]
    return msgspec.structs.replace(
        row,
        state=marked.marker.state,
        epoch=marked.marker.epoch,
        marker_seconds=max((snapshot.now - marked.at).total_seconds(), 0),
        publisher=", ".join(publishers),
    )


def _silent(beats: Sequence[Beat], services: Iterable[str]) -> Iterable[str]:
    heard = Counter(beat.service for beat in beats)
    for service in services:
        if not heard[service]:
            yield f"no heartbeat of {service}: it is down, or uses another bus"
    versions = sorted({beat.version for beat in beats})
    if len(versions) > 1:
        yield f"replicas are of different versions: {', '.join(versions)}"


def _stale(rows: Sequence[Row]) -> Iterable[str]:
    for row in rows:
        if row.marker_seconds is not None and row.marker_seconds > STALE_SECONDS:
            who = f"{row.publisher} publishes it" if row.publisher else "no watcher publishes it"
            yield f"{row.name} may be out of date: its marker is {span(row.marker_seconds)} old; {who}"
        elif row.state == "listing":
            yield f"{row.name} is being listed again"


def _late(behind: Sequence[Consumer]) -> Iterable[str]:
    for one in behind:
        if one.pending > BEHIND:
            yield f"{one.reader} is {one.pending} messages behind in {one.stream}"


def _full(streams: Sequence[Stream], now: datetime) -> Iterable[str]:
    for stream in streams:
        if 0 < stream.max_bytes * FULL < stream.bytes:
            back = span((now - stream.begins).total_seconds())
            yield f"{stream.name} is full: it holds the last {back} instead of {span(stream.max_age or DAY)}"


def _waiting(beats: Sequence[Beat]) -> Iterable[str]:
    for beat in beats:
        for part, why in beat.waiting.items():
            yield f"{beat.name} waits: {part} {why}".rstrip()
