"""Claims: a provisioner binds them, and the claim protection keeps them while a pod uses them: one that has a node."""

import msgspec

from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.model import claims
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Action, Actor
from tests.simulation.cluster.durations import Durations
from tests.simulation.history import Version


class Volumes(Actor):
    """The controller of claims; the volumes themselves are not simulated."""

    def __init__(self, server: ApiServer, durations: Durations, wire: Wire | None = None) -> None:
        super().__init__(server, "volumes", CLAIM, wire)
        self.durations = durations

    def see(self, version: Version) -> None:
        """Handle a change of a claim, or the end of a pod that may have used one."""
        if version.resource == CLAIM:
            self.touch((version.namespace, version.name))
        elif version.resource == POD and version.before is not None:
            for name in claims.used_by(version.before):
                self.touch((version.namespace, name))

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        if "deletionTimestamp" in document["metadata"]:
            after = claims.released(document) if self._is_released(document) else document
            return (
                None
                if after == document
                else Action("let go", self.durations.collect, lambda: self._let_go(place, after))
            )
        after = claims.bound(document)
        return (
            None if after == document else Action("bind", self.durations.bind_claim, lambda: self._bind(place, after))
        )

    def _is_released(self, claim: Json) -> bool:
        pods = self.server.store.table(POD).objects.values()
        return claims.is_released(claim, (stored.document for stored in pods))

    async def _bind(self, place: ObjectKey, after: Json) -> None:
        volume = {"spec": {"volumeName": after["spec"]["volumeName"]}}
        await self.api.patch(CLAIM, *place, msgspec.json.encode(volume), PatchType.MERGE)
        bound = {"status": {"conditions": None} | after["status"]}
        await self.api.patch(CLAIM, *place, msgspec.json.encode(bound), PatchType.MERGE, subresource="status")

    async def _let_go(self, place: ObjectKey, after: Json) -> None:
        metadata = after["metadata"]
        versioned = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        body = {"metadata": versioned | {"finalizers": metadata["finalizers"] or None}}
        await self.api.patch(CLAIM, *place, msgspec.json.encode(body), PatchType.MERGE)
