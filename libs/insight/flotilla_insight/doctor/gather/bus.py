"""Reads the state of the bus: JetStream's account, each stream with its marker and its consumers, and heartbeats.

It also compares the bus with the apiserver: some objects of each resource, listed first, looked up seconds later.
"""

import asyncio
import base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.api.uidranges import MOST_RANGES
from flotilla_common.bus import subjects
from flotilla_common.bus.heartbeat import Heartbeat
from flotilla_common.bus.interface import Bus, BusError, Message, StreamSpec
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.pod_shards import plural_on_bus, pod_shards, unsharded
from flotilla_common.bus.streams import newest, shards_of
from flotilla_common.bus.subjects import ACT_STREAM, WHY_STREAM, Marker
from flotilla_common.clock import Clock
from flotilla_common.installed import published
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.mirror.table import version_number
from flotilla_insight.bus.streams import consumers_of
from flotilla_insight.doctor.facts import Account, Consumer, ReplicaHeartbeat, Sample, Stream
from flotilla_insight.published import LISTEN_SECONDS, listen

T = TypeVar("T")

SECONDS = 5.0
"""Deadline of one request."""

AT_ONCE = 16

OBJECTS = 20
"""Number of objects of each resource."""

PATIENCE_SECONDS = LISTEN_SECONDS + 2.0
"""Limit for expected services without a heartbeat: one may be late, or lost."""


class _Error(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _Replica(msgspec.Struct):
    name: str = ""
    offline: bool = False


class _Cluster(msgspec.Struct):
    replicas: list[_Replica] = []


class _State(msgspec.Struct):
    messages: int = 0
    first_seq: int = 0
    last_seq: int = 0
    num_subjects: int = 0
    subjects: dict[str, int] | None = None


class _Info(msgspec.Struct):
    error: _Error | None = None
    config: Json = {}
    ts: datetime | None = None
    cluster: _Cluster = msgspec.field(default_factory=_Cluster)
    state: _State = msgspec.field(default_factory=_State)


class _Stored(msgspec.Struct):
    data: str = ""
    time: datetime | None = None


class _Message(msgspec.Struct):
    message: _Stored = msgspec.field(default_factory=_Stored)


class _Limits(msgspec.Struct):
    max_storage: int = -1


class _AccountInfo(msgspec.Struct):
    storage: int = 0
    limits: _Limits = msgspec.field(default_factory=_Limits)
    error: _Error | None = None


@cache
def with_markers(shards: int = 1) -> Mapping[str, Resource]:
    """Return the streams that the watcher fills with objects, by name, with their resources.

    `shards` is the number of those of pods; with MOST_RANGES the result has all that there can be.
    """
    return {subjects.kube_stream(resource).name: resource for resource in _parts(published(), shards)}


@cache
def with_copies(shards: int = 1) -> Mapping[str, Resource]:
    """Return the streams with copies for nodes, by name, with their resources."""
    routed = (POD, *(kind.resource for kind in catalogue.KINDS if kind.node_route is not None))
    return {subjects.node_stream(resource).name: resource for resource in _parts(routed, shards)}


def pods_among(names: Collection[str]) -> list[str]:
    """Return the streams of pods among these: there is one for each shard."""
    return [name for name in names if (one := with_markers(MOST_RANGES).get(name)) and unsharded(one) == POD]


def _parts(resources: Iterable[Resource], shards: int) -> list[Resource]:
    return [part for one in resources for part in (pod_shards(shards) if one == POD else [one])]


@cache
def wanted(shards: int = 1) -> Mapping[str, StreamSpec]:
    """Return all streams that must exist, by name."""
    kube = [subjects.kube_stream(resource) for resource in with_markers(shards).values()]
    node = [subjects.node_stream(resource) for resource in with_copies(shards).values()]
    return {spec.name: spec for spec in (*kube, *node, ACT_STREAM, WHY_STREAM)}


async def account(bus: NatsBus) -> Account:
    """Return the use and the limits of JetStream. Raises BusError."""
    info = await _ask(bus, "INFO", {}, _AccountInfo)
    if info.error is not None:
        raise BusError(info.error.description)
    return Account(info.storage, info.limits.max_storage)


async def streams(bus: NatsBus, names: Collection[str]) -> Mapping[str, Stream | None]:
    """Return the streams by name; None for a missing one. Raises BusError."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> Stream | None:
        async with slots:
            return await _stream(bus, name)

    found = await asyncio.gather(*map(one, names))
    return dict(zip(names, found, strict=True))


async def _stream(bus: NatsBus, name: str) -> Stream | None:
    objects, copies = with_markers(MOST_RANGES).get(name), with_copies(MOST_RANGES).get(name)
    question = {"subjects_filter": f"node.v1.*.{plural_on_bus(copies)}"} if copies else {}
    info = await _ask(bus, f"STREAM.INFO.{name}", question, _Info)
    if info.error is not None or info.ts is None:
        return None
    last = await _last(bus, name, subjects.kube_marker(objects)) if objects else None
    consumers = await consumers_of(bus, name)
    return Stream(
        config=info.config,
        now=info.ts,
        offline=[one.name for one in info.cluster.replicas if one.offline],
        marker=msgspec.json.decode(base64.b64decode(last.data), type=Marker) if last else None,
        marked=last.time if last else None,
        consumers=[Consumer(one.config.deliver_subject, one.num_pending) for one in consumers],
        nodes=frozenset(filter(None, map(subjects.marked_node, info.state.subjects or ()))),
        subjects=info.state.num_subjects,
        gaps=max(info.state.last_seq - info.state.first_seq + 1 - info.state.messages, 0),
    )


async def _last(bus: NatsBus, stream: str, subject: str) -> _Stored | None:
    found = (await _ask(bus, f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject}, _Message)).message
    return found if found.time else None


async def _ask(bus: NatsBus, subject: str, question: Json, reply: type[T]) -> T:
    return msgspec.json.decode(
        await bus.request(f"{bus.api}.{subject}", msgspec.json.encode(question), SECONDS), type=reply
    )


class Listed(msgspec.Struct, frozen=True):
    """Objects as the apiserver had them. `complete`: the LIST had no further page."""

    objects: Sequence[ObjectMeta]
    version: str
    complete: bool
    denied: bool = False  # they may not be listed


async def listing(api: Api, resources: Sequence[Resource]) -> Mapping[Resource, Listed]:
    """Return some objects of each resource that is served."""
    found = await asyncio.gather(*(_listed(api, resource) for resource in resources))
    return {resource: one for resource, one in zip(resources, found, strict=True) if one is not None}


async def compared(api: Api, bus: NatsBus, listings: Mapping[Resource, Listed]) -> Mapping[str, Sample]:
    """Return the comparison with the bus, by the resource's id. Raises BusError."""
    found = await asyncio.gather(*(_sample(bus, resource, listed) for resource, listed in listings.items()))
    later = await listing(api, list(listings))
    return {
        resource.id: msgspec.structs.replace(sample, version=later[resource].version)
        for resource, sample in zip(listings, found, strict=True)
        if resource in later
    }


async def _listed(api: Api, resource: Resource) -> Listed | None:
    try:
        page = await api.list(resource, limit=OBJECTS, metadata_only=True)
    except ApiError as error:
        denied = Listed([], "", complete=False, denied=True)
        return denied if error.code == 403 else None  # else it is not served
    return Listed([metadata_of(raw) for raw in page.items], page.resource_version, not page.next_token)


async def _sample(bus: NatsBus, resource: Resource, listed: Listed) -> Sample:
    if listed.denied:
        return Sample(0, denied=True)
    missing, stale = list[str](), list[str]()
    for meta in listed.objects:
        message = await newest(bus, resource, meta.namespace, meta.name)
        if message is None:
            missing.append(_name(meta.namespace, meta.name))
        elif _version(message) < version_number(meta.resource_version):
            stale.append(_name(meta.namespace, meta.name))
    ghosts = await _ghosts(bus, resource, listed) if listed.complete else []
    return Sample(len(listed.objects), missing, stale, ghosts)


async def _ghosts(bus: NatsBus, resource: Resource, listed: Listed) -> list[str]:
    """Return objects that the stream has and the apiserver had not, although they are no newer than the LIST."""
    shards = await shards_of(bus, resource)
    return [name for shard in shards for name in await _ghosts_in(bus, shard, listed)]


async def _ghosts_in(bus: NatsBus, resource: Resource, listed: Listed) -> list[str]:
    stream = subjects.kube_stream(resource).name
    known = {(meta.namespace, meta.name) for meta in listed.objects}
    held = await bus.stream_subjects(stream) - {subjects.kube_marker(resource)}
    strange = [subject for subject in held if subjects.object_key(subject) not in known]
    found: list[str] = []
    for subject in sorted(strange)[:OBJECTS]:
        message = await bus.get_last(stream, subject)
        if message is None or message.headers.get(subjects.OP) in (subjects.DELETED, subjects.MOVED):
            continue
        if _version(message) <= version_number(listed.version):
            found.append(_name(*subjects.object_key(subject)))
    return found


def _version(message: Message) -> int:
    return version_number(message.headers.get(subjects.RV, ""))


def _name(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


async def heartbeats(bus: Bus, clock: Clock, complete: Callable[[set[str]], bool]) -> Sequence[ReplicaHeartbeat]:
    """Return the replicas with heartbeats. `complete` reports whether the services so far are all."""
    found: dict[tuple[str, str], ReplicaHeartbeat] = {}

    def take(beat: Heartbeat) -> None:
        ahead = None if beat.at is None else (beat.at - clock.now()).total_seconds()
        found[beat.service, beat.replica] = ReplicaHeartbeat(beat, ahead)

    listening = await listen(bus, take)
    began = clock.monotonic()
    while (spent := clock.monotonic() - began) < PATIENCE_SECONDS:
        if spent >= LISTEN_SECONDS and complete({service for service, _ in found}):
            break
        await clock.sleep(0.1)
    await listening.stop()
    return list(found.values())
