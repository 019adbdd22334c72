"""The namespace controller: a namespace in deletion is emptied, and goes when it is empty."""

import msgspec

from flotilla_common.api.resources import NAMESPACE, POD
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Action, Actor
from tests.simulation.cluster.durations import Durations
from tests.simulation.history import Version

_Content = tuple[Kind, ObjectKey, Json]


class Namespaces(Actor):
    """Ends namespaces."""

    def __init__(self, server: ApiServer, durations: Durations, wire: Wire | None = None) -> None:
        super().__init__(server, "namespaces", NAMESPACE, wire)
        self.durations = durations

    def see(self, version: Version) -> None:
        """Handle a change of a namespace, or a deletion in one."""
        if version.resource == NAMESPACE:
            self.touch(("", version.name))
        elif version.after is None and version.namespace:
            self.touch(("", version.namespace))

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        if "deletionTimestamp" not in document["metadata"]:
            return None
        content = self._content(place[1])
        if not content:
            return Action("finalize", self.durations.collect, lambda: self._finalize(place, document))
        if any("deletionTimestamp" not in one["metadata"] for _, _, one in self._next(content)):
            return Action("empty", self.durations.collect, lambda: self._empty(place))
        return None

    def _content(self, namespace: str) -> list[_Content]:
        tables = [(kind, self.server.store.table(kind.resource)) for kind in self.server.kinds()]
        return [(kind, place, stored.document) for kind, table in tables for place, stored in table.in_order(namespace)]

    def _next(self, content: list[_Content]) -> list[_Content]:
        """Pods go first; nothing that they may need goes before they are gone."""
        return [one for one in content if one[0].resource == POD] or content

    async def _empty(self, place: ObjectKey) -> None:
        for kind, (namespace, name), document in self._next(self._content(place[1])):
            metadata = document["metadata"]
            if "deletionTimestamp" not in metadata:
                options: Json = {"propagationPolicy": "Background", "preconditions": {"uid": metadata["uid"]}}
                await self.api.delete_with(kind.resource, namespace, name, options)

    async def _finalize(self, place: ObjectKey, document: Json) -> None:
        unheld: Json = {"spec": {}}
        body = document | unheld
        await self.api.replace(NAMESPACE, "", place[1], msgspec.json.encode(body), "finalize")
