"""The bus: who publishes and reads which stream, how far behind, and who holds which shard.

The streams hold objects of all namespaces, so all but the messages about one object needs a right of its own: to list
leases in Flotilla's namespace, which the operators of an installation have.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.resources import LEASE
from flotilla_common.bus.heartbeat import NODE_AGENT
from flotilla_common.bus.pod_shards import plural_of
from flotilla_common.bus.subjects import untoken
from flotilla_common.control.leases import Lease
from flotilla_common.control.shards import NUMBER_LABEL, ROLE_LABEL, SERVICE_LABEL
from flotilla_console import paths
from flotilla_console.blocks.types import (
    AnyBlock,
    Badge,
    Edge,
    Graph,
    Group,
    Link,
    Mono,
    Node,
    Notice,
    Paragraph,
    Row,
    Table,
    Tone,
    spans,
)
from flotilla_console.model.beats import Beat
from flotilla_console.model.resources import RESOURCES
from flotilla_console.model.sight import LIST, Sight, Wanted
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.parts import age, whole_table
from flotilla_console.pages.traffic import BusReader, traffic_blocks
from flotilla_console.story.bus_look import BusLook, BusWatcher
from flotilla_console.story.traffic import ObjectKey, Traffic
from flotilla_insight.bus import gather
from flotilla_insight.bus.streams import Consumer
from flotilla_insight.bus.view import BEHIND, View, view
from flotilla_insight.bus.view import Row as StreamRow
from flotilla_insight.durations import size, span

MOST_IN_GRAPH = 24
"""Streams in the graph: the busiest; the table has all."""

MOST_FINDINGS = 30
MOST_READERS = 200
MOST_NAMESPACES = 100

_TOKEN = re.compile(r"[a-z0-9_][a-z0-9_-]*").fullmatch
"""Matches the token of a Kubernetes name, and no wildcard, which would read the messages of many objects."""

_RESOURCES = {resource.id: resource for resource in RESOURCES}

_NOT_ALLOWED = "The bus as a whole carries all namespaces. It needs the right to list leases in namespace "


def needed(namespace: str) -> Wanted:
    """Return the right that the page needs, where `namespace` is Flotilla's own."""
    return Wanted(verb=LIST, group=LEASE.group, plural=LEASE.plural, namespace=namespace)


class BusRead(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page shows of one request: the bus as a whole, and the messages about one object."""

    look: BusLook | None = None
    """None for those who may not see the traffic of all namespaces."""
    traffic: Traffic | None = None
    """None without an object that may be seen."""


def page(watcher: BusWatcher, reader: BusReader, namespace: str, services: Collection[str]) -> PageSpec:
    """Return the page. `services`: those that must have a heartbeat."""

    async def prepare(request: PageRequest) -> BusRead:
        sight, named = request.sight, object_of(request.query.get("subject", ""))
        sees = named is not None and sight.may(LIST, named[0], named[1])
        return BusRead(
            look=await watcher.look() if sight.may(LIST, LEASE, namespace) else None,
            traffic=await reader.read(*named) if named is not None and sees else None,
        )

    def build(request: PageRequest) -> Page:
        return bus_page(request, namespace, services)

    return PageSpec(name="bus", path="/bus", build=build, prepare=prepare, navigation="Bus", parameters=("subject",))


def object_of(subject: str) -> ObjectKey | None:
    """Return the object whose versions are published on a subject; None for other subjects."""
    match subject.split("."):
        case ["kube", "v1", group, plural, namespace, name, *_] if _TOKEN(namespace) and _TOKEN(name):
            resource = _RESOURCES.get(f"{group}.{plural_of(plural)}")
            return None if resource is None else (resource, untoken(namespace), untoken(name))
        case _:
            return None


def bus_page(request: PageRequest, namespace: str, services: Collection[str]) -> Page:
    """Return the page."""
    trail = (Link("Fleet", paths.FLEET),)
    read = request.read if isinstance(request.read, BusRead) else BusRead()
    blocks = tuple(_traffic(request, read.traffic))
    if request.sight.may(LIST, LEASE, namespace):
        blocks += tuple(_blocks(request, read.look or BusLook(), services))
    else:
        blocks += (Notice("idle", spans(f"{_NOT_ALLOWED}{namespace}.")),)
    return Page(title="Bus", blocks=blocks, trail=trail)


def _traffic(request: PageRequest, traffic: Traffic | None) -> Iterator[AnyBlock]:
    """Yield the messages about the object that the query names."""
    subject = request.query.get("subject", "")
    if not subject:
        return
    if traffic is None:
        yield Notice("warn", spans("There is no object under the subject ", Mono(subject), ", or you may not see it."))
        return
    yield Paragraph(spans("The versions of the object are published under ", Mono(subject), "."))
    yield from traffic_blocks(traffic)


def _blocks(request: PageRequest, look: BusLook, services: Collection[str]) -> Iterator[AnyBlock]:
    beats = [one for one in request.sight.beats() if one.heartbeat.service != NODE_AGENT]
    for trouble in filter(None, (look.bus_error, look.leases_error)):
        yield Notice("bad", spans(trouble))
    if look.snapshot is not None:
        alive = [msgspec.convert(one.heartbeat, gather.Beat, from_attributes=True) for one in beats if one.alive]
        shown = view(msgspec.structs.replace(look.snapshot, beats=alive), services)
        yield from _findings(shown)
        yield _graph(shown, look.snapshot.consumers, beats)
        yield _streams(shown)
        behind = any(one.pending > BEHIND for one in look.snapshot.consumers)
        readers = _readers(look.snapshot.consumers)
        yield Group("all-readers", spans(f"All readers ({readers.total})"), (readers,), open=behind)
    yield _replicas(beats)
    leases = _leases(look.leases, beats)
    troubled = sum(row.tone is not None for row in leases.rows)
    lacking = f", {troubled} without a live holder" if troubled else ""
    yield Group("all-leases", spans(f"All leases ({leases.total}){lacking}"), (leases,), open=bool(troubled))
    yield _namespaces(request.sight)


def _findings(shown: View) -> Iterator[AnyBlock]:
    if not shown.findings:
        yield Notice("ok", spans("Nothing is behind."))
    for finding in shown.findings[:MOST_FINDINGS]:
        yield Notice("warn", spans(finding))


def _graph(shown: View, consumers: Sequence[Consumer], beats: Sequence[Beat]) -> Graph:
    """Return watchers, streams and the services that read them."""
    streams = sorted(
        (row for row in shown.streams if not row.quiet), key=lambda row: (-row.message_rate, -row.pending, row.name)
    )[:MOST_IN_GRAPH]
    names = {row.name for row in streams}
    publishers = sorted({name for row in streams for name in _publishers(row)})
    pending = Counter[tuple[str, str]]()
    for one in consumers:
        if one.stream in names:
            key = one.stream, _service(one.reader)
            pending[key] = max(pending[key], one.pending)
    readers = sorted({service for _, service in pending})
    nodes = [Node(f"p/{name}", name, 0, "ok") for name in publishers]
    nodes += [_stream_node(row) for row in streams]
    nodes += [Node(f"r/{name}", name, 2, _service_tone(name, beats)) for name in readers]
    edges = [
        Edge(f"p/{name}", f"s/{row.name}")
        for row in streams
        for name in _publishers(row)  # the box has its rate
    ]
    edges += [
        Edge(f"s/{stream}", f"r/{service}", f"{count} behind" if count else "", _lag_tone(count))
        for (stream, service), count in sorted(pending.items())
    ]
    return Graph("flow", "From the watchers through streams to the services", tuple(nodes), tuple(edges))


def _publishers(row: StreamRow) -> Sequence[str]:
    return [name for name in row.publisher.split(", ") if name]


def _stream_node(row: StreamRow) -> Node:
    detail = f"{row.messages} messages, {size(row.bytes)}, {row.message_rate:.1f}/s"
    return Node(f"s/{row.name}", row.name, 1, _lag_tone(row.pending), detail=detail)


def _service(reader: str) -> str:
    """Return the service of a reader `service/replica`; of a node's agent, the service of all agents."""
    return NODE_AGENT if reader.startswith("node ") else reader.partition("/")[0]


def _service_tone(service: str, beats: Sequence[Beat]) -> Tone:
    own = [one for one in beats if one.heartbeat.service == service]
    if not own:
        return "idle"
    return "ok" if any(one.alive for one in own) else "bad"


def _lag_tone(pending: int) -> Tone:
    return "warn" if pending > BEHIND else "busy" if pending else "ok"


def _streams(shown: View) -> Table:
    rows = tuple(
        Row(
            key=row.name,
            cells=(
                spans(Mono(row.name)),
                spans(str(row.messages)),
                spans(size(row.bytes) + (f" of {size(row.max_bytes)}" if row.max_bytes > 0 else "")),
                spans(f"{row.message_rate:.1f}"),
                spans(f"{size(row.byte_rate)}"),
                spans(str(row.readers)),
                spans(Badge(f"{row.pending}", _lag_tone(row.pending))),
                spans("-" if row.last_seconds is None else f"{span(row.last_seconds)} ago"),
                spans(_marker(row)),
                spans(row.publisher),
            ),
        )
        for row in shown.streams
    )
    columns = (
        ("stream", "Stream"),
        ("messages", "Messages"),
        ("size", "Size"),
        ("rate", "Per second"),
        ("bytes", "Bytes per second"),
        ("readers", "Readers"),
        ("pending", "Behind"),
        ("last", "Last"),
        ("marker", "Marker"),
        ("publisher", "Published by"),
    )
    return whole_table("streams", "Streams", columns, rows)


def _marker(row: StreamRow) -> str:
    return f"{row.state}, {span(row.marker_seconds)} ago" if row.marker_seconds is not None else ""


def _readers(consumers: Sequence[Consumer]) -> Table:
    """Return all readers of streams, those that are behind first."""
    ordered = sorted(consumers, key=lambda one: (-one.pending, one.stream, one.reader, one.name))
    rows = tuple(
        Row(
            key=f"{one.stream}/{one.name}",
            cells=(
                spans(one.reader),
                spans(Mono(one.stream)),
                spans(Badge(str(one.pending), _lag_tone(one.pending))),
                spans(str(one.unacknowledged)),
                spans(str(one.delivered)),
            ),
        )
        for one in ordered[:MOST_READERS]
    )
    columns = (
        ("reader", "Reader"),
        ("stream", "Stream"),
        ("pending", "Behind"),
        ("unacknowledged", "Unacknowledged"),
        ("delivered", "At sequence"),
    )
    cut = f", {MOST_READERS} of {len(ordered)}" if len(ordered) > MOST_READERS else ""
    return whole_table("readers", f"Readers{cut}", columns, rows)


def _replicas(beats: Sequence[Beat]) -> Table:
    columns = (
        ("replica", "Replica"),
        ("state", "State"),
        ("version", "Version"),
        ("shards", "Shards"),
        ("publishes", "Publishes"),
        ("lag", "Mirror proven current"),
        ("direct", "Watches directly"),
        ("waits", "Waits for"),
    )
    return whole_table("replicas", "Services", columns, tuple(map(_replica, beats)))


def _replica(one: Beat) -> Row:
    beat = one.heartbeat
    state = Badge("alive", "ok") if one.alive else Badge(f"silent for {span(one.age)}", "bad")
    direct = Badge(f"{len(beat.direct)} resources, not by the bus", "warn") if beat.direct else "no"
    return Row(
        key=f"{beat.service}/{beat.replica}",
        cells=(
            spans(f"{beat.service}/{beat.replica}"),
            spans(state),
            spans(beat.version),
            spans(", ".join(map(str, beat.shards))),
            spans(str(len(beat.resources) or "")),
            spans(f"{beat.lag:g} s ago" if beat.lag else ""),
            spans(direct),
            spans("; ".join(f"{part} {why}".rstrip() for part, why in beat.waiting.items())),
        ),
        tone="ok" if one.alive else "bad",
    )


def _leases(leases: Sequence[Lease], beats: Sequence[Beat]) -> Table:
    """Return who holds which shard."""
    holders = {one.heartbeat.holder: one for one in beats if one.heartbeat.holder}
    rows = tuple(_lease(one, holders) for one in sorted(leases, key=_lease_order))
    columns = (
        ("service", "Service"),
        ("lease", "Lease"),
        ("role", "Role"),
        ("holder", "Held by"),
        ("shards", "Of shards"),
        ("renewed", "Renewed"),
    )
    return whole_table("shards", "Leases", columns, rows)


def _lease_order(one: Lease) -> tuple[str, str, int, str]:
    name = one.metadata.name
    number = name.rpartition("-")[2]
    labels = one.metadata.labels
    index = int(number) if number.isdecimal() and len(number) < 10 else 0
    return labels.get(SERVICE_LABEL, ""), labels.get(ROLE_LABEL, ""), index, name


def _lease(one: Lease, holders: Mapping[str, Beat]) -> Row:
    labels, holder = one.metadata.labels, one.spec.holder_identity or ""
    beat = holders.get(holder)
    state = _holder_state(holder, beat)
    return Row(
        key=f"{one.metadata.namespace}/{one.metadata.name}",
        cells=(
            spans(labels.get(SERVICE_LABEL, "")),
            spans(Mono(one.metadata.name)),
            spans(labels.get(ROLE_LABEL, "")),
            spans(f"{_holder_name(holder, beat)} ".lstrip(), state),
            spans(labels.get(NUMBER_LABEL, "")),
            age(_seconds(one.spec.renew_time)),
        ),
        tone=state.tone if state.tone in ("warn", "bad") else None,
    )


def _holder_name(holder: str, beat: Beat | None) -> str:
    return holder if beat is None else f"{beat.heartbeat.service}/{beat.heartbeat.replica}"


def _holder_state(holder: str, beat: Beat | None) -> Badge:
    if not holder:
        return Badge("no holder", "warn")
    if beat is None:
        return Badge("no heartbeat", "idle")
    return Badge("alive", "ok") if beat.alive else Badge("silent", "bad")


def _seconds(moment: str | None) -> float:
    """Return a MicroTime in seconds since 1970; 0 if it is not one."""
    try:
        return datetime.fromisoformat(moment or "").timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _namespaces(sight: Sight) -> Table:
    """Return the number of objects in each namespace, of those that the reader may see."""
    pods = Counter(pod.metadata.namespace for pod in sight.pods())
    workloads = Counter(one.namespace for one in sight.workloads() if one.namespace)
    ordered = sorted({*pods, *workloads}, key=lambda name: (-pods[name], name))
    rows = tuple(
        Row(
            key=name,
            cells=(
                spans(Link(name, paths.path(query={"namespace": name}))),
                spans(str(pods[name])),
                spans(str(workloads[name])),
            ),
        )
        for name in ordered[:MOST_NAMESPACES]
    )
    cut = f", {MOST_NAMESPACES} of {len(ordered)}" if len(ordered) > MOST_NAMESPACES else ""
    columns = (("namespace", "Namespace"), ("pods", "Pods"), ("workloads", "Workloads"))
    return whole_table("namespaces", f"Objects that you may see{cut}", columns, rows)
