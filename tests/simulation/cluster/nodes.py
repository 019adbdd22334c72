"""The node lifecycle controller and the pod garbage collector: what becomes of pods whose node is lost.

A silent node is marked, its pods are no longer Ready, and after a while they are deleted. But nobody is there to end
their containers: they stay terminating until the node is back, or somebody forces them, or the node itself is removed.
"""

import msgspec

from flotilla_common.api.documents import mappings, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control.plan import Json, PatchType
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import Place
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Actor, Step
from tests.simulation.cluster.pace import Pace

UNREACHABLE = "node.kubernetes.io/unreachable"


class Nodes(Actor):
    """Marks nodes lost and found."""

    def __init__(self, server: ApiServer, pace: Pace, dead: set[str], wire: Wire | None = None) -> None:
        super().__init__(server, "nodes", NODE, wire)
        self.pace = pace
        self._dead = dead

    def next_step(self, place: Place, document: Json) -> Step | None:
        lost = place[1] in self._dead
        if lost and not _unreachable(document):
            return Step("lose", self.pace.node_silence, lambda: self._mark(place[1], "Unknown", document))
        if not lost and _unreachable(document):
            return Step("find", self.pace.collect, lambda: self._mark(place[1], "True", document))
        return None

    async def _mark(self, name: str, ready: str, node: Json) -> None:
        now = rfc3339(self.clock.now())
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": now}
        body = msgspec.json.encode({"status": {"conditions": [condition]}})
        await self.api.patch(NODE, "", name, body, PatchType.STRATEGIC, subresource="status")
        taints = [taint for taint in mappings(node["spec"].get("taints")) if taint["key"] != UNREACHABLE]
        if ready != "True":
            taints += [{"key": UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        body = msgspec.json.encode({"spec": {"taints": taints or None}})
        await self.api.patch(NODE, "", name, body, PatchType.MERGE)


class LostPods(Actor):
    """The pods of nodes that are lost or removed."""

    def __init__(self, server: ApiServer, pace: Pace, wire: Wire | None = None) -> None:
        super().__init__(server, "nodes", POD, wire)
        self.pace = pace

    def next_step(self, place: Place, document: Json) -> Step | None:
        name, uid = document["spec"].get("nodeName"), document["metadata"]["uid"]
        if not name:
            return None
        node = self.stored(("", name), NODE)
        if node is None:
            return Step("remove", self.pace.orphaned_pods, lambda: self._delete(place, uid, {"gracePeriodSeconds": 0}))
        if not _unreachable(node):
            return None
        ready = [one for one in mappings(member(document, "status").get("conditions")) if one["type"] == "Ready"]
        if ready and ready[0]["status"] == "True":
            return Step("mark", self.pace.collect, lambda: self._mark(place, uid))
        if "deletionTimestamp" not in document["metadata"]:
            return Step("evict", self.pace.eviction, lambda: self._delete(place, uid, {}))
        return None

    async def _mark(self, place: Place, uid: str) -> None:
        now = rfc3339(self.clock.now())
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        body = msgspec.json.encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
        await self.api.patch(POD, *place, body, PatchType.STRATEGIC, subresource="status")

    async def _delete(self, place: Place, uid: str, options: Json) -> None:
        await self.api.delete_with(POD, *place, options | {"preconditions": {"uid": uid}})


def _unreachable(node: Json) -> bool:
    return any(taint["key"] == UNREACHABLE for taint in mappings(node["spec"].get("taints")))
