"""The scheduler: the emptiest node that is fit for the pod, as soon as its claims are bound."""

import msgspec

from flotilla_common.api.documents import mapping, mappings, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import CLAIM, NODE, POD
from flotilla_common.control.plan import Json, PatchType
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import Place
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Actor, Step
from tests.simulation.cluster.pace import Pace

MOST_PODS = 110
"""Pods on a node that does not say how many it takes."""


class Scheduler(Actor):
    """Binds pods to nodes."""

    def __init__(self, server: ApiServer, pace: Pace, wire: Wire | None = None) -> None:
        super().__init__(server, "scheduler", POD, wire)
        self.pace = pace

    def next_step(self, place: Place, document: Json) -> Step | None:
        metadata, spec = document["metadata"], document["spec"]
        finished = member(document, "status").get("phase") in ("Succeeded", "Failed")
        if spec.get("nodeName") or "deletionTimestamp" in metadata or finished or spec.get("schedulingGates"):
            return None
        node = self._choose(document)
        if node:
            return Step("bind", self.pace.schedule, lambda: self._bind(place, node))
        if any(one.get("reason") == "Unschedulable" for one in mappings(member(document, "status").get("conditions"))):
            return None
        return Step("complain", self.pace.schedule, lambda: self._complain(place, metadata["uid"]))

    def _choose(self, pod: Json) -> str:
        """The name of the node; empty for none."""
        if not self._claims_bound(pod):
            return ""
        load: dict[str, int] = {}
        for _, other in self.all():
            node = other["spec"].get("nodeName", "")
            load[node] = load.get(node, 0) + 1
        fit = [name for (_, name), node in self.all(NODE) if _fits(pod, node, load.get(name, 0))]
        return min(fit, key=lambda name: (load.get(name, 0), name), default="")

    def _claims_bound(self, pod: Json) -> bool:
        namespace = pod["metadata"]["namespace"]
        for volume in mappings(pod["spec"].get("volumes")):
            if name := member(volume, "persistentVolumeClaim").get("claimName"):
                claim = self.stored((namespace, name), CLAIM)
                if claim is None or "deletionTimestamp" in claim["metadata"] or claim["status"]["phase"] != "Bound":
                    return False
        return True

    async def _bind(self, place: Place, node: str) -> None:
        namespace, name = place
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": node}}
        await self.api.raw("POST", POD.path(namespace, name, "binding"), msgspec.json.encode(body))

    async def _complain(self, place: Place, uid: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        condition["lastTransitionTime"] = rfc3339(self.clock.now())
        body = msgspec.json.encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
        await self.api.patch(POD, *place, body, PatchType.STRATEGIC, subresource="status")


def _fits(pod: Json, node: Json, load: int) -> bool:
    if "deletionTimestamp" in node["metadata"] or node["spec"].get("unschedulable"):
        return False
    wanted = mapping(pod["spec"].get("nodeSelector"))
    if not wanted.items() <= mapping(node["metadata"].get("labels")).items():
        return False
    room = int(member(node, "status", "allocatable").get("pods", MOST_PODS))
    taints = [taint for taint in mappings(node["spec"].get("taints")) if taint.get("effect") != "PreferNoSchedule"]
    tolerations = mappings(pod["spec"].get("tolerations"))
    return load < room and all(any(_tolerates(one, taint) for one in tolerations) for taint in taints)


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and toleration.get("value", "") == taint.get("value", "")
