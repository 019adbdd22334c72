"""The model: a mirror of what the console shows, the last reasons, and the heartbeats.

Workloads are read when a page needs them, and only those that changed since.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.sidecarset.pods import injected
from flotilla_common.api.meta import Object
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.api.workload import CONTROLLED, controller_uid
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock
from flotilla_common.health import Health
from flotilla_common.kube.discovery import is_installed
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.decoder import Undecodable
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table
from flotilla_common.workload.budget import related_budget
from flotilla_console.model.beats import Beats
from flotilla_console.model.kinds import KINDS
from flotilla_console.model.kinds.kind import ConsoleKind
from flotilla_console.model.objects import Stored, Template, pack, read, trim, trim_pod
from flotilla_console.model.reasons import ReasonKey, Reasons, ReasonTable
from flotilla_console.model.resources import NOT_ON_BUS, STORED, TEMPLATES
from flotilla_console.model.verdicts import verdict_of
from flotilla_console.model.workload import Workload

ON_NODE = "node"
"""Index of pods by the name of their node."""

IN_NAMESPACE = "namespace"
"""Index of objects by their namespace."""

OF_SIDECARS = "sidecars"
"""Index of pods by the SidecarSets that were injected."""

OF_BUDGET = "budget"
"""Index of pods by namespace and name of their PodUnavailableBudget."""

BOOKMARK_SECONDS = 90.0
"""The apiserver sends a bookmark about every minute, so a watch with a younger one is up to date."""

WorkloadKey = tuple[str, str, str, str]
"""Group, plural, namespace and name."""


class Held(msgspec.Struct, frozen=True):
    """A right that a reader of these objects needs: to list the resource in the namespace."""

    resource: Resource
    namespace: str


class Model:
    """Everything that the console knows. Pages see it through a `Sight` only."""

    def __init__(
        self, *, api: Api, bus: Bus, clock: Clock, health: Health | None = None, fallback_after: float = 30.0
    ) -> None:
        self._api = api
        self.bus = bus
        self.clock = clock
        self.mirror = Mirror(api=api, bus=bus, clock=clock, health=health, fallback_after=fallback_after)
        self.reasons = ReasonTable(self._explained)
        self.beats = Beats(clock)
        self.version = 0
        """Grows with each change of an object or of a reason."""
        self.places_version = 0
        """Grows when there are objects of a resource in another namespace: then other rights matter."""
        self._places: Counter[Held] = Counter()
        self._workloads: dict[WorkloadKey, Workload] = {}
        self._changed: dict[WorkloadKey, None] = {}
        self._all: list[Workload] | None = None
        by_owner = {CONTROLLED: controller_uid}
        self.pods: Table[Pod] = self._add(
            POD, Pod, {**by_owner, ON_NODE: _node, OF_SIDECARS: _sidecars, OF_BUDGET: _budget}
        )
        self.nodes: Table[Node] = self._add(NODE, Node, {})
        self.templates = {one: self._add(one, Template, by_owner) for one in TEMPLATES}
        self.stored = {one: self._add(one, Stored, {**by_owner, IN_NAMESPACE: _namespace}) for one in STORED}
        self.pods.listen(trim_pod)
        for table in self.templates.values():
            table.listen(pack)
        for table in self.stored.values():
            table.listen(trim)
        for kind in KINDS.values():
            self.stored[kind.resource].listen(partial(self._touch, kind))

    async def run(self) -> None:
        """Keep the model up to date until cancelled. Raises VersionsWentBack when etcd was restored."""
        await self.reasons.follow(self.bus)
        await self.beats.subscribe(self.bus)
        await asyncio.gather(*map(self._look_for, (*self.templates, *self.stored)))
        await self.mirror.run()

    async def synced(self) -> None:
        """Wait until the model holds what existed when it began."""
        await self.mirror.synced()

    @property
    def lag(self) -> float:
        """Return the seconds since the last proof that all tables are up to date."""
        return max(map(self._lag_of, self.mirror.resources))

    @property
    def direct(self) -> list[Resource]:
        """Return the resources that are watched directly because the bus is away."""
        return [one for one in self.mirror.resources if self.mirror.is_direct(one)]

    def places(self) -> Collection[Held]:
        """Return the resources and namespaces of all objects: what rights matter now."""
        return [held for held, count in self._places.items() if count > 0]

    def undecodable(self) -> Iterator[Undecodable]:
        """Yield the objects that cannot be decoded."""
        for resource in self.mirror.resources:
            yield from self.mirror.undecodable(resource)

    def workloads(self) -> Sequence[Workload]:
        """Return all workloads, by kind, in no special order."""
        self._refresh()
        if self._all is None:
            self._all = list(self._workloads.values())
        return self._all

    def workload(self, key: WorkloadKey) -> Workload | None:
        """Return one workload, or None."""
        self._refresh()
        return self._workloads.get(key)

    def why(self, workload: Workload) -> Reasons | None:
        """Return the last reasons of a workload."""
        meta = workload.metadata
        return self.reasons.of(workload.kind.resource, meta.namespace, meta.name, meta.uid)

    def owned(self, resource: Resource, uid: str) -> Iterable[Stored | Template]:
        """Return the objects that the owner with this uid controls."""
        table: Table[Any] = self.templates[resource] if resource in self.templates else self.stored[resource]
        return table.by_index(CONTROLLED, uid)

    def _lag_of(self, resource: Resource) -> float:
        lag = self.mirror.lag(resource)
        watched = resource in NOT_ON_BUS or self.mirror.is_direct(resource)
        return 0.0 if watched and lag < BOOKMARK_SECONDS else lag

    async def _look_for(self, resource: Resource) -> None:
        """Wait later for the objects of a kind that is installed; one that is not may come at any time."""
        self.mirror.may_be_missing(resource, now=not await is_installed(self._api, resource))

    def _add(self, resource: Resource, kind: type[Any], indexes: dict[str, Callable[[Any], Iterable[Any]]]) -> Any:
        table: Table[Any] = self.mirror.add(resource, kind, indexes, direct=resource in NOT_ON_BUS)
        table.listen(partial(self._count, resource))
        return table

    def _count(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        self.version += 1
        if old is not None and new is not None:
            return  # objects do not change their namespace
        if old is not None:
            self._places[Held(resource, old.metadata.namespace)] -= 1
        if new is not None:
            held = Held(resource, new.metadata.namespace)
            self._places[held] += 1
            self.places_version += self._places[held] == 1

    def _touch(self, kind: ConsoleKind, old: Stored | None, new: Stored | None) -> None:
        if (obj := new or old) is not None:
            self._changed[kind.resource.group, kind.resource.plural, *obj.metadata.key] = None

    def _explained(self, key: ReasonKey) -> None:
        plural, namespace, name = key
        self.version += 1
        if (group := _GROUPS.get(plural)) is not None:
            self._changed[group, plural, namespace, name] = None

    def _refresh(self) -> None:
        """Read the workloads that changed since the last time."""
        if not self._changed:
            return
        self._all = None
        changed, self._changed = self._changed, {}
        for key in changed:
            group, plural, namespace, name = key
            kind = KINDS[group, plural]
            stored = self.stored[kind.resource].get(namespace, name)
            if stored is None:
                self._workloads.pop(key, None)
            else:
                self._workloads[key] = self._read(kind, stored)

    def _read(self, kind: ConsoleKind, stored: Stored) -> Workload:
        reading, meta = kind.read(read(stored.spec), read(stored.status)), stored.metadata
        why = self.reasons.of(kind.resource, meta.namespace, meta.name, meta.uid)
        return Workload(kind=kind, metadata=meta, reading=reading, verdict=verdict_of(meta, reading, why))


_GROUPS = {kind.resource.plural: kind.resource.group for kind in KINDS.values() if kind.resource.custom}
"""The group of each kind with reasons, by plural."""


def _node(pod: Pod) -> Iterable[str]:
    return [pod.spec.node_name] if pod.spec.node_name else []


def _namespace(obj: Object) -> Iterable[str]:
    return [obj.metadata.namespace]


def _sidecars(pod: Pod) -> Iterable[str]:
    return injected(pod.metadata.annotations)


def _budget(pod: Pod) -> Iterable[tuple[str, str]]:
    name = related_budget(pod.metadata)
    return [(pod.metadata.namespace, name)] if name else []
