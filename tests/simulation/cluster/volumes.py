"""Claims: a provisioner binds them, and the claim protection keeps them while a pod uses them: one that has a node."""

import msgspec

from flotilla_common.api.documents import mappings, member
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Json, PatchType
from tests.simulation.apiserver.kinds.core import PROTECTION
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import Place
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Actor, Step
from tests.simulation.cluster.pace import Pace
from tests.simulation.history import Version


class Volumes(Actor):
    """Looks after claims; the volumes themselves are of no interest to anybody here."""

    def __init__(self, server: ApiServer, pace: Pace, wire: Wire | None = None) -> None:
        super().__init__(server, "volumes", CLAIM, wire)
        self.pace = pace

    def see(self, version: Version) -> None:
        """A claim changed, or a pod that may have used one went or finished."""
        if version.resource == CLAIM:
            self.touch((version.namespace, version.name))
        elif version.resource == POD and version.before is not None:
            for name in _claims(version.before):
                self.touch((version.namespace, name))

    def next_step(self, place: Place, document: Json) -> Step | None:
        metadata = document["metadata"]
        if "deletionTimestamp" in metadata:
            if PROTECTION in metadata.get("finalizers", ()) and not self._used(place):
                return Step("let go", self.pace.collect, lambda: self._let_go(place, metadata))
            return None
        if document["status"].get("phase") == "Pending":
            return Step("bind", self.pace.bind_claim, lambda: self._bind(place, document))
        return None

    def _used(self, place: Place) -> bool:
        table = self.server.store.table(POD)
        pods = [stored.document for other, stored in table.objects.items() if other[0] == place[0]]
        return any("nodeName" in pod["spec"] and place[1] in _claims(pod) and not _finished(pod) for pod in pods)

    async def _bind(self, place: Place, claim: Json) -> None:
        volume = {"spec": {"volumeName": f"pvc-{claim['metadata']['uid']}"}}
        await self.api.patch(CLAIM, *place, msgspec.json.encode(volume), PatchType.MERGE)
        capacity = member(claim, "spec", "resources", "requests")
        bound = {"status": {"phase": "Bound", "capacity": capacity}}
        await self.api.patch(CLAIM, *place, msgspec.json.encode(bound), PatchType.MERGE, subresource="status")

    async def _let_go(self, place: Place, metadata: Json) -> None:
        kept = [name for name in metadata["finalizers"] if name != PROTECTION]
        versioned = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        body = {"metadata": versioned | {"finalizers": kept or None}}
        await self.api.patch(CLAIM, *place, msgspec.json.encode(body), PatchType.MERGE)


def _claims(pod: Json) -> list[str]:
    sources = [member(volume, "persistentVolumeClaim") for volume in mappings(pod["spec"].get("volumes"))]
    return [str(source["claimName"]) for source in sources if "claimName" in source]


def _finished(pod: Json) -> bool:
    return member(pod, "status").get("phase") in ("Succeeded", "Failed")
