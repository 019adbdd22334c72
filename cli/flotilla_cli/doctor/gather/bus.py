"""Reads the state of the bus: JetStream's account, and each stream with its marker and its consumers."""

import asyncio
import base64
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache
from typing import TypeVar

import msgspec

from flotilla_cli.bus.streams import consumers_of
from flotilla_cli.doctor.facts import Account, Consumer, Stream
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, StreamSpec
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.subjects import ACT_STREAM, WHY_STREAM, Marker
from flotilla_common.installed import published

T = TypeVar("T")

SECONDS = 5.0
"""Deadline of one request."""

AT_ONCE = 16


class _Error(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _Replica(msgspec.Struct):
    name: str = ""
    offline: bool = False


class _Cluster(msgspec.Struct):
    replicas: list[_Replica] = []


class _State(msgspec.Struct):
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
def with_markers() -> Mapping[str, Resource]:
    """Return the streams that the watcher fills with objects, by name, with their resources."""
    return {subjects.kube_stream(resource).name: resource for resource in published()}


@cache
def with_copies() -> Mapping[str, Resource]:
    """Return the streams with copies for nodes, by name, with their resources."""
    routed = (POD, *(kind.resource for kind in catalogue.KINDS if kind.node_route is not None))
    return {subjects.node_stream(resource).name: resource for resource in routed}


@cache
def wanted() -> Mapping[str, StreamSpec]:
    """Return all streams that must exist, by name."""
    kube = [subjects.kube_stream(resource) for resource in with_markers().values()]
    node = [subjects.node_stream(resource) for resource in with_copies().values()]
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
    objects, copies = with_markers().get(name), with_copies().get(name)
    question = {"subjects_filter": f"node.v1.*.{copies.plural}"} if copies else {}
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
    )


async def _last(bus: NatsBus, stream: str, subject: str) -> _Stored | None:
    found = (await _ask(bus, f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject}, _Message)).message
    return found if found.time else None


async def _ask(bus: NatsBus, subject: str, question: Json, reply: type[T]) -> T:
    return msgspec.json.decode(
        await bus.request(f"$JS.API.{subject}", msgspec.json.encode(question), SECONDS), type=reply
    )
