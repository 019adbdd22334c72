"""The scheduler: the emptiest node that is fit for the pod, as soon as its claims are bound."""

from collections import Counter

import msgspec

from flotilla_common.api.documents import mappings, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import CLAIM, NODE, POD
from flotilla_common.control.plan import Json, PatchType
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Action, Actor
from tests.simulation.cluster.durations import Durations
from tests.simulation.cluster.node_fit import lacks, repelled_by, selects

MOST_PODS = 110
"""Pods on a node that does not say how many it takes."""


class Scheduler(Actor):
    """Binds pods to nodes."""

    def __init__(self, server: ApiServer, durations: Durations, wire: Wire | None = None) -> None:
        super().__init__(server, "scheduler", POD, wire)
        self.durations = durations

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        metadata, spec = document["metadata"], document["spec"]
        finished = member(document, "status").get("phase") in ("Succeeded", "Failed")
        if spec.get("nodeName") or "deletionTimestamp" in metadata or finished or spec.get("schedulingGates"):
            return None
        node, why = self._choose(document)
        if node:
            return Action("bind", self.durations.schedule, lambda: self._bind(place, node))
        if any(one.get("reason") == "Unschedulable" for one in mappings(member(document, "status").get("conditions"))):
            return None
        return Action("complain", self.durations.schedule, lambda: self._complain(place, metadata["uid"], why))

    def _choose(self, pod: Json) -> tuple[str, str]:
        """Return the name of the node; if there is none, the reason."""
        if not self._claims_bound(pod):
            return "", "pod has unbound immediate PersistentVolumeClaims"
        load = Counter(other["spec"].get("nodeName", "") for _, other in self.all())
        reasons = {name: _why_not(pod, node, load[name]) for (_, name), node in self.all(NODE)}
        fit = [name for name, why in reasons.items() if not why]
        if fit:
            return min(fit, key=lambda name: (load[name], name)), ""
        counts = ", ".join(f"{count} {why}" for why, count in sorted(Counter(reasons.values()).items()))
        return "", f"0/{len(reasons)} nodes are available: {counts}."

    def _claims_bound(self, pod: Json) -> bool:
        namespace = pod["metadata"]["namespace"]
        for volume in mappings(pod["spec"].get("volumes")):
            if name := member(volume, "persistentVolumeClaim").get("claimName"):
                claim = self.stored((namespace, name), CLAIM)
                if claim is None or "deletionTimestamp" in claim["metadata"] or claim["status"]["phase"] != "Bound":
                    return False
        return True

    async def _bind(self, place: ObjectKey, node: str) -> None:
        namespace, name = place
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": node}}
        await self.api.raw("POST", POD.path(namespace, name, "binding"), msgspec.json.encode(body))

    async def _complain(self, place: ObjectKey, uid: str, why: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        condition["lastTransitionTime"] = rfc3339(self.clock.now())
        body = msgspec.json.encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})
        await self.api.patch(POD, *place, body, PatchType.STRATEGIC, subresource="status")


def _why_not(pod: Json, node: Json, load: int) -> str:
    """Return why the pod does not fit the node, in the scheduler's words; empty if it does."""
    spec = pod["spec"]
    if "deletionTimestamp" in node["metadata"]:
        return "node(s) were being deleted"
    if not selects(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    if taints := repelled_by(spec, node):
        return f"node(s) had untolerated taint {{{taints[0]['key']}: {taints[0].get('value', '')}}}"
    if (missing := lacks(spec, node)) not in ("", "pods"):
        return f"Insufficient {missing}"
    room = int(member(node, "status", "allocatable").get("pods", MOST_PODS))
    return "" if load < room else "Too many pods"
