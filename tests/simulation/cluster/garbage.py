"""The garbage collector of `flotilla_common.model.garbage`, over the apiserver and at its own pace."""

import msgspec

from flotilla_common.api.meta import group_of
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.model.garbage import Do, Due, Graph, Object
from flotilla_common.model.store import owners_of
from flotilla_common.model.writes import FOREGROUND, ORPHAN
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Action, Actor
from tests.simulation.cluster.durations import Durations
from tests.simulation.history import Version


class GarbageCollector(Graph):
    """One collector per resource."""

    def __init__(self, server: ApiServer, durations: Durations, wire: Wire | None = None) -> None:
        super().__init__()
        self.server = server
        self.durations = durations
        self._wire = wire
        self._collectors: dict[str, _Collector] = {}

    @property
    def busy(self) -> bool:
        """Something is under way or due."""
        return any(collector.busy for collector in self._collectors.values())

    def see(self, version: Version) -> None:
        """Handle a change of an object: it may have to be collected, and its neighbours as well."""
        this = version.resource, (version.namespace, version.name)
        for resource, place in self.changed(this, version.before, version.after):
            collector = self._collectors.get(resource.id)
            if collector is None:
                collector = self._collectors[resource.id] = _Collector(self, resource, self._wire)
            collector.touch(place)

    def owner(self, reference: Json, namespace: str) -> Object | None:
        kind = self.server.kind_of(group_of(str(reference.get("apiVersion", ""))), str(reference.get("kind")))
        if kind is None:
            return None
        place = (namespace if kind.resource.namespaced else "", str(reference.get("name")))
        document = self.document((kind.resource, place))
        if document is None or document["metadata"]["uid"] != reference.get("uid"):
            return None
        return kind.resource, place

    def document(self, this: Object) -> Json | None:
        stored = self.server.store.table(this[0]).objects.get(this[1])
        return stored.document if stored else None


class _Collector(Actor):
    """Looks after the objects of one resource."""

    def __init__(self, collector: GarbageCollector, resource: Resource, wire: Wire | None) -> None:
        super().__init__(collector.server, "gc", resource, wire)
        self._all = collector

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        due = self._all.due(document)
        return (
            None if due is None else Action(due.do, self._all.durations.collect, lambda: self._do(due, place, document))
        )

    async def _do(self, due: Due, place: ObjectKey, document: Json) -> None:
        metadata = document["metadata"]
        match due.do:
            case Do.DELETE:
                conditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
                options: Json = {"preconditions": conditions, "propagationPolicy": due.policy}
                await self.api.delete_with(self.resource, *place, options)
            case Do.DROP:
                await self._set(self.resource, place, metadata, ownerReferences=due.owners)
            case Do.ORPHAN:
                await self._orphan(metadata["uid"])
                await self._drop_finalizer(place, metadata, ORPHAN)
            case Do.LET_GO:
                await self._drop_finalizer(place, metadata, FOREGROUND)

    async def _orphan(self, uid: str) -> None:
        for resource, other in self._all.dependents(uid):
            document = self._all.document((resource, other))
            if document is not None:
                kept = [one for one in owners_of(document) if one["uid"] != uid]
                await self._set(resource, other, document["metadata"], ownerReferences=kept)

    async def _drop_finalizer(self, place: ObjectKey, metadata: Json, finalizer: str) -> None:
        kept = [name for name in metadata["finalizers"] if name != finalizer]
        await self._set(self.resource, place, metadata, finalizers=kept)

    async def _set(self, resource: Resource, place: ObjectKey, metadata: Json, **members: object) -> None:
        changed = {key: value or None for key, value in members.items()}
        body = {"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]} | changed}
        await self.api.patch(resource, *place, msgspec.json.encode(body), PatchType.MERGE)
