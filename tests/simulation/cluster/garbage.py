"""The garbage collector: dependents follow their owners, in the way that the deletion asks for.

Background: what has only vanished owners is deleted. Foreground: the owner stays until its dependents that block it are
gone. Orphan: the references are taken out first. An owner is the object with that uid; a namesake is none.
"""

from collections.abc import Iterable

import msgspec

from flotilla_common.api.documents import mappings
from flotilla_common.api.meta import group_of
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json, PatchType
from tests.simulation.apiserver.deletion import FOREGROUND, ORPHAN
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import Place
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Actor, Step
from tests.simulation.cluster.pace import Pace
from tests.simulation.history import Version

GONE, LEAVING, SOLID = "gone", "leaving", "solid"
"""What an owner can be: absent, waiting for its dependents to go, or there."""

Object = tuple[Resource, Place]


class GarbageCollector:
    """One collector per resource, and who depends on whom."""

    def __init__(self, server: ApiServer, pace: Pace, wire: Wire | None = None) -> None:
        self.server = server
        self.pace = pace
        self._wire = wire
        self._collectors: dict[str, _Collector] = {}
        self._dependents: dict[str, dict[Object, None]] = {}

    @property
    def busy(self) -> bool:
        """Something is under way or due."""
        return any(collector.busy for collector in self._collectors.values())

    def see(self, version: Version) -> None:
        """An object changed: it may have to go, and so may those around it."""
        before, after = _owners(version.before), _owners(version.after)
        this = version.resource, (version.namespace, version.name)
        if before is not after:
            self._index(this, before, after)
        if after or _finalizing(version.after):
            self._touch(this)
        if version.after is None or _finalizing(version.after):
            for dependent in self.dependents(version.uid):
                self._touch(dependent)
        if version.after is None or "deletionTimestamp" in version.after["metadata"]:
            for owner in before or after:
                if found := self.owner(owner, version.namespace):
                    self._touch(found)

    def dependents(self, uid: str) -> list[Object]:
        """The objects that name this uid as an owner."""
        return list(self._dependents.get(uid, ()))

    def owner(self, reference: Json, namespace: str) -> Object | None:
        """The object that a reference means, if it is there."""
        kind = self.server.kind_of(group_of(str(reference.get("apiVersion", ""))), str(reference.get("kind")))
        if kind is None:
            return None
        place = (namespace if kind.resource.namespaced else "", str(reference.get("name")))
        stored = self.server.store.table(kind.resource).objects.get(place)
        if stored is None or stored.document["metadata"]["uid"] != reference.get("uid"):
            return None
        return kind.resource, place

    def document(self, found: Object) -> Json | None:
        """The object as it is stored."""
        stored = self.server.store.table(found[0]).objects.get(found[1])
        return stored.document if stored else None

    def _index(self, this: Object, before: list[Json], after: list[Json]) -> None:
        for reference in before:
            self._dependents.get(str(reference["uid"]), {}).pop(this, None)
        for reference in after:
            self._dependents.setdefault(str(reference["uid"]), {})[this] = None

    def _touch(self, this: Object) -> None:
        resource, place = this
        collector = self._collectors.get(resource.id)
        if collector is None:
            collector = self._collectors[resource.id] = _Collector(self, resource, self._wire)
        collector.touch(place)


class _Collector(Actor):
    """Looks after the objects of one resource."""

    def __init__(self, collector: GarbageCollector, resource: Resource, wire: Wire | None) -> None:
        super().__init__(collector.server, "gc", resource, wire)
        self._all = collector

    def next_step(self, place: Place, document: Json) -> Step | None:
        metadata, pause = document["metadata"], self._all.pace.collect
        if "deletionTimestamp" in metadata:
            finalizers = metadata.get("finalizers", ())
            if ORPHAN in finalizers:
                return Step("orphan", pause, lambda: self._orphan(place, metadata))
            if FOREGROUND in finalizers and not self._blocking(metadata["uid"]):
                return Step("let go", pause, lambda: self._drop_finalizer(place, metadata, FOREGROUND))
            return None
        owners = _owners(document)
        states = [self._state(owner, metadata.get("namespace", "")) for owner in owners]
        if not owners or all(state == SOLID for state in states):
            return None
        if SOLID in states:
            kept = [owner for owner, state in zip(owners, states, strict=True) if state == SOLID]
            return Step("drop references", pause, lambda: self._set_owners(self.resource, place, metadata, kept))
        foreground = LEAVING in states and bool(self._blocking(metadata["uid"]))
        return Step("delete", pause, lambda: self._delete(place, metadata, foreground))

    def _state(self, reference: Json, namespace: str) -> str:
        found = self._all.owner(reference, namespace)
        document = self._all.document(found) if found else None
        if document is None:
            return GONE
        metadata = document["metadata"]
        return LEAVING if "deletionTimestamp" in metadata and FOREGROUND in metadata.get("finalizers", ()) else SOLID

    def _blocking(self, uid: str) -> list[Object]:
        """Dependents that keep a foreground deletion waiting."""
        return [found for found in self._all.dependents(uid) if _blocks(self._all.document(found), uid)]

    async def _delete(self, place: Place, metadata: Json, foreground: bool) -> None:
        conditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        policy = "Foreground" if foreground else "Background"
        await self.api.delete_with(self.resource, *place, {"preconditions": conditions, "propagationPolicy": policy})

    async def _orphan(self, place: Place, metadata: Json) -> None:
        for resource, other in self._all.dependents(metadata["uid"]):
            document = self._all.document((resource, other))
            if document is not None:
                kept = [one for one in _owners(document) if one["uid"] != metadata["uid"]]
                await self._set_owners(resource, other, document["metadata"], kept)
        await self._drop_finalizer(place, metadata, ORPHAN)

    async def _set_owners(self, resource: Resource, place: Place, metadata: Json, owners: list[Json]) -> None:
        versioned = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        body = {"metadata": versioned | {"ownerReferences": owners or None}}
        await self.api.patch(resource, *place, msgspec.json.encode(body), PatchType.MERGE)

    async def _drop_finalizer(self, place: Place, metadata: Json, finalizer: str) -> None:
        kept = [name for name in metadata["finalizers"] if name != finalizer]
        versioned = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        body = {"metadata": versioned | {"finalizers": kept or None}}
        await self.api.patch(self.resource, *place, msgspec.json.encode(body), PatchType.MERGE)


_NONE: list[Json] = []


def _owners(document: Json | None) -> list[Json]:
    if document is None:
        return _NONE
    references = document["metadata"].get("ownerReferences")
    return references or _NONE


def _finalizing(document: Json | None) -> bool:
    if document is None or "deletionTimestamp" not in document["metadata"]:
        return False
    finalizers: Iterable[str] = document["metadata"].get("finalizers", ())
    return ORPHAN in finalizers or FOREGROUND in finalizers


def _blocks(document: Json | None, uid: str) -> bool:
    owners = mappings(document["metadata"].get("ownerReferences")) if document else []
    return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)
