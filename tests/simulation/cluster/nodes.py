"""The node lifecycle controller and the pod garbage collector: taints of nodes, and pods of lost nodes.

A silent node is tainted, its pods are no longer Ready, and after a while those that do not tolerate that are deleted.
But no kubelet ends their containers: they stay terminating until the node returns, they are force-deleted, or the node
is removed.
"""

import msgspec

from flotilla_common.api.documents import mappings, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control.plan import Json, PatchType
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Action, Actor
from tests.simulation.cluster.durations import Durations
from tests.simulation.cluster.node_fit import UNSCHEDULABLE, repelled_by

UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
OWN_TAINTS = (UNREACHABLE, NOT_READY, UNSCHEDULABLE)
"""The keys of taints that the controller sets and takes away."""


class Nodes(Actor):
    """Marks nodes lost and found, and taints them by what is wrong with them."""

    def __init__(self, server: ApiServer, durations: Durations, dead: set[str], wire: Wire | None = None) -> None:
        super().__init__(server, "nodes", NODE, wire)
        self.durations = durations
        self._dead = dead

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        lost, ready = place[1] in self._dead, _ready(document)
        if lost and ready != "Unknown":
            return Action("lose", self.durations.node_silence, lambda: self._mark(place[1], "Unknown"))
        if not lost and ready == "Unknown":
            return Action("find", self.durations.collect, lambda: self._mark(place[1], "True"))
        taints = _tainted(document)
        if taints != list(mappings(document["spec"].get("taints"))):
            return Action("taint", self.durations.collect, lambda: self._taint(place[1], taints))
        return None

    async def _mark(self, name: str, ready: str) -> None:
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(self.clock.now())}
        body = msgspec.json.encode({"status": {"conditions": [condition]}})
        await self.api.patch(NODE, "", name, body, PatchType.STRATEGIC, subresource="status")

    async def _taint(self, name: str, taints: list[Json]) -> None:
        body = msgspec.json.encode({"spec": {"taints": taints or None}})
        await self.api.patch(NODE, "", name, body, PatchType.MERGE)


class LostPods(Actor):
    """The pods of nodes that are lost or removed, and those that do not tolerate what their node has become."""

    def __init__(self, server: ApiServer, durations: Durations, wire: Wire | None = None) -> None:
        super().__init__(server, "nodes", POD, wire)
        self.durations = durations

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        name, uid = document["spec"].get("nodeName"), document["metadata"]["uid"]
        if not name:
            return None
        node = self.stored(("", name), NODE)
        if node is None:
            return Action(
                "remove", self.durations.orphaned_pods, lambda: self._delete(place, uid, {"gracePeriodSeconds": 0})
            )
        if _ready(node) == "Unknown" and _ready(document) == "True":
            return Action("mark", self.durations.collect, lambda: self._mark(place, uid))
        taints = repelled_by(document["spec"], node, ("NoExecute",))
        if taints and "deletionTimestamp" not in document["metadata"]:
            forgiven = all(taint["key"] in OWN_TAINTS for taint in taints)
            pause = self.durations.eviction if forgiven else self.durations.collect
            return Action("evict", pause, lambda: self._delete(place, uid, {}))
        return None

    async def _mark(self, place: ObjectKey, uid: str) -> None:
        now = rfc3339(self.clock.now())
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        body = msgspec.json.encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
        await self.api.patch(POD, *place, body, PatchType.STRATEGIC, subresource="status")

    async def _delete(self, place: ObjectKey, uid: str, options: Json) -> None:
        await self.api.delete_with(POD, *place, options | {"preconditions": {"uid": uid}})


def _ready(document: Json) -> str:
    """Return the Ready condition's status of a node or a pod; empty for none."""
    conditions = mappings(member(document, "status").get("conditions"))
    return next((str(one["status"]) for one in conditions if one["type"] == "Ready"), "")


def _tainted(node: Json) -> list[Json]:
    """Return the taints that the node should have: those of users, and those of its conditions."""
    taints = [taint for taint in mappings(node["spec"].get("taints")) if taint["key"] not in OWN_TAINTS]
    ready = _ready(node)
    if ready != "True":
        key = UNREACHABLE if ready == "Unknown" else NOT_READY
        taints += [{"key": key, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    if node["spec"].get("unschedulable"):
        taints.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
    return taints
