"""Reads an object and its dependents for `get` from the apiserver, and keeps them current with watches."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from rich.tree import Tree

from flotilla_cli.tree.render import render
from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.keys import DEPLOYMENT_REVISION
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.numbers import integer
from flotilla_common.api.resources import POD, REPLICA_SET, REVISION, Resource
from flotilla_common.bus.interface import Message
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, Unreachable, pages
from flotilla_common.kube.reflector import HeadMeta, Reflector, Sink, Way
from flotilla_common.workload.causes import PodContext
from flotilla_insight.pods.findings import PodContextReader, worth_a_look
from flotilla_insight.published import Why, decoded
from flotilla_insight.tree import Card, SetView, card, view
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import KindView
from flotilla_insight.workload import PodFacts, Workload

LOOK_SECONDS = 5.0
"""Seconds between two reads of events and nodes."""


class ObjectGone(Exception):
    """The object does not exist (any more)."""


class _Dependent(msgspec.Struct, frozen=True):
    """An owned object. A pod or revision is decoded once, when it is read."""

    metadata: ObjectMeta
    body: Pod | ControllerRevision | bytes


class LiveView:
    """The current state of one object. The reasons of its service come over the bus."""

    def __init__(self, api: Api, clock: Clock, kind: KindView, namespace: str, name: str) -> None:
        self._api = api
        self._clock = clock
        self._kind = kind
        self._namespace = namespace
        self._name = name
        self._raw, self._uid = b"", ""
        self._dependents: dict[Resource, dict[str, _Dependent]] = {resource: {} for resource in _followed(kind)}
        self._basis = PodContext()
        self._contexts: Mapping[str, PodContext] = {}  # of pods whose events and nodes were read
        self.why: Why | None = None
        self.changed = asyncio.Event()
        self._troubles: dict[Resource, str] = {}  # by the resource that cannot be followed

    async def load(self) -> None:
        """Read everything once. Raises ApiError (404 when there is no such object), Unreachable."""
        self._raw = await self._api.get(self._kind.resource, self._namespace, self._name)
        self._uid = metadata_of(self._raw).uid
        for resource in self._dependents:
            await self._list(resource)
        await self._load_pod_contexts()

    async def keep(self) -> None:
        """Follow all changes until cancelled. Raises ObjectGone when the object is deleted."""
        async with asyncio.TaskGroup() as group:
            sink = _ObjectSink(self, self._kind.resource)
            group.create_task(self._reflector(self._kind.resource, sink, self._name).run())
            for resource in self._dependents:
                group.create_task(self._reflector(resource, _DependentSink(self, resource)).run())
            group.create_task(self._refresh_pod_contexts())

    def on_why(self, message: Message) -> None:
        """Store a record of why.v1; one that cannot be decoded counts as none."""
        self.why = decoded(message.data, Why)
        self.changed.set()

    def view(self) -> SetView | Card:
        """Return what is shown, as data."""
        return self._shown(self._kind, self._raw, self.why)

    @property
    def parts(self) -> int:
        """Return how many tables share the screen."""
        return _tables(self.view())

    def drawing(self, now: datetime, lines: int = 0) -> Tree:
        """Return the drawing, with at most that many lines per table (0: all)."""
        return render(self.view(), now, lines)

    def _shown(self, kind: KindView, raw: bytes, why: Why | None = None) -> SetView | Card:
        children = [self._shown(of, one) for of, one in self._children(kind, raw)]
        if kind.workload is None:
            return card(kind, raw, why, children)
        workload = kind.workload(raw)
        basis = workload.context(self._basis)
        pods = [PodFacts(pod, self._contexts.get(pod.metadata.name, basis)) for pod in self._pods(kind, workload)]
        revisions = self._revisions(kind, workload)
        return view(workload, pods, revisions, why, children)

    def _children(self, kind: KindView, raw: bytes) -> Iterator[tuple[KindView, bytes]]:
        for resource in kind.children:
            for body in self._owned(resource, {metadata_of(raw).uid}):
                if isinstance(body, bytes):
                    yield view_of(resource), body

    def _owned(self, resource: Resource, owners: Collection[str]) -> Sequence[Pod | ControllerRevision | bytes]:
        """Return the objects of one of the owners, given by their uids."""
        held = self._dependents[resource].values()
        return [one.body for one in held if any(owner.uid in owners for owner in one.metadata.owner_references)]

    def _revisions(self, kind: KindView, workload: Workload) -> Sequence[ControllerRevision]:
        owned = self._owned(kind.revisions, {workload.metadata.uid})
        return [body for body in owned if isinstance(body, ControllerRevision)]

    def _pods(self, kind: KindView, workload: Workload) -> Sequence[Pod]:
        revisions = self._revisions(kind, workload)
        owners = {workload.metadata.uid, *(revision.metadata.uid for revision in revisions)}
        return [body for body in self._owned(POD, owners) if isinstance(body, Pod)]

    def _workloads(self, kind: KindView, raw: bytes) -> Iterator[tuple[KindView, Workload]]:
        """Yield the object itself and its children if they have pods."""
        if kind.workload is not None:
            yield kind, kind.workload(raw)
        for of, one in self._children(kind, raw):
            yield from self._workloads(of, one)

    async def _refresh_pod_contexts(self) -> None:
        while POD in self._dependents:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self._load_pod_contexts()
            except Unreachable:
                continue  # the watches report it
            self.changed.set()

    async def _load_pod_contexts(self) -> None:
        """Read the context of a few pods that do not serve; parts that may not be read are left out."""
        if POD not in self._dependents:
            return
        reader, now = PodContextReader(self._api), self._clock.now()
        self._basis = PodContext(now=now, silent=await reader.silent_nodes(now))
        looked: list[tuple[Pod, PodContext]] = []
        for kind, workload in self._workloads(self._kind, self._raw):
            basis = workload.context(self._basis)
            looked += [(pod, basis) for pod in worth_a_look(self._pods(kind, workload), basis)]
        contexts = await asyncio.gather(*(reader.context_of(pod, basis) for pod, basis in looked))
        self._contexts = {pod.metadata.name: context for (pod, _), context in zip(looked, contexts, strict=True)}

    def _reflector(self, resource: Resource, sink: Sink, name: str = "") -> Reflector:
        return Reflector(self._api, resource, sink, self._clock, self._namespace, name)

    async def _list(self, resource: Resource) -> None:
        async for page in pages(self._api, resource, self._namespace):
            for raw in page.items:
                self.take(resource, raw)

    def set_object(self, uid: str, raw: msgspec.Raw) -> None:
        """Take the newest version of the object. Raises ObjectGone for another object of its name."""
        if uid != self._uid:
            raise ObjectGone
        self._raw = bytes(raw)
        self.changed.set()

    def keep_only(self, resource: Resource, names: Collection[str]) -> None:
        """Drop the dependents that have other names."""
        dependents = self._dependents[resource]
        for name in dependents.keys() - set(names):
            del dependents[name]
        self.changed.set()

    def drop(self, resource: Resource, name: str) -> None:
        """Drop a dependent that was deleted."""
        self._dependents[resource].pop(name, None)
        self.changed.set()

    @property
    def trouble(self) -> str:
        """Return why the view may be out of date; empty when it is not."""
        return next(filter(None, self._troubles.values()), "")

    def set_trouble(self, resource: Resource, trouble: str) -> None:
        """Store why a resource cannot be followed; empty when it can."""
        if trouble != self._troubles.get(resource, ""):
            self._troubles[resource] = trouble
            self.changed.set()

    def take(self, resource: Resource, raw: msgspec.Raw) -> None:
        """Take the newest version of a dependent."""
        meta = metadata_of(raw)
        if self._keeps(meta):
            self._dependents[resource][meta.name] = _Dependent(meta, _body(resource, raw))
        else:
            self._dependents[resource].pop(meta.name, None)
        self.changed.set()

    def _keeps(self, meta: ObjectMeta) -> bool:
        """Report whether the object, or a child, may own this one. Pods may arrive before their child."""
        if self._kind.children:
            return bool(meta.owner_references)
        return any(reference.uid == self._uid for reference in meta.owner_references)


class _ObjectSink:
    """Receives the versions of the object itself."""

    def __init__(self, view: LiveView, resource: Resource) -> None:
        self._view = view
        self._resource = resource
        self._exists = False

    async def listing(self, way: Way) -> None:
        self._exists = False

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._exists = True
        self._view.set_object(head.uid, item)

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._exists = False

    async def complete(self, version: str) -> None:
        if not self._exists:
            raise ObjectGone

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        if kind == "DELETED":
            raise ObjectGone
        self._view.set_object(head.uid, item)

    async def progress(self, version: str) -> None:
        """Ignore bookmarks."""

    def state(self, trouble: str) -> None:
        self._view.set_trouble(self._resource, trouble)


class _DependentSink:
    """Receives the objects of one resource that the object, or a child of it, may own."""

    def __init__(self, view: LiveView, resource: Resource) -> None:
        self._view = view
        self._resource = resource
        self._names: set[str] = set()

    async def listing(self, way: Way) -> None:
        self._names.clear()

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._names.add(head.name)
        self._view.take(self._resource, item)

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._names.discard(head.name)

    async def complete(self, version: str) -> None:
        self._view.keep_only(self._resource, self._names)

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        if kind == "DELETED":
            self._view.drop(self._resource, head.name)
        else:
            self._view.take(self._resource, item)

    async def progress(self, version: str) -> None:
        """Ignore bookmarks."""

    def state(self, trouble: str) -> None:
        self._view.set_trouble(self._resource, trouble)


def _followed(kind: KindView) -> Iterator[Resource]:
    """Yield the resources that belong to an object of the kind, and to its children."""
    if kind.workload is not None or kind.children:
        yield POD
        yield from {one.revisions for one in (kind, *map(view_of, kind.children))}
    yield from kind.children


def _body(resource: Resource, raw: msgspec.Raw) -> Pod | ControllerRevision | bytes:
    if resource == POD:
        return msgspec.json.decode(raw, type=Pod)
    copied = bytes(raw)  # a slice would keep the whole page in memory
    if resource == REPLICA_SET:
        return _as_revision(copied)
    return msgspec.json.decode(copied, type=ControllerRevision) if resource == REVISION else copied


def _as_revision(replica_set: bytes) -> ControllerRevision:
    """Return a ReplicaSet as a revision of its Deployment. Both have the template at the same path of their JSON."""
    meta = metadata_of(replica_set)
    number = integer(meta.annotations.get(DEPLOYMENT_REVISION, ""))
    return ControllerRevision(metadata=meta, revision=number or 0, data=msgspec.Raw(replica_set))


def _tables(shown: SetView | Card) -> int:
    mine = len(shown.revisions) if isinstance(shown, SetView) else 1
    return max(mine + sum(map(_tables, shown.children or ())), 1)
