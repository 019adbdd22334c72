"""The Job controller: one pod at a time until one succeeds, or backoffLimit is reached (kubernetes.io/docs, Job).

No scenario needs parallelism, indexes or finalizers on pods.
"""

import msgspec

from flotilla_common.api.documents import mappings
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import JOB, POD
from flotilla_common.control.plan import Json, PatchType
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Action, Actor
from tests.simulation.cluster.durations import Durations
from tests.simulation.history import Version

ENDS = {"Complete": "CompletionsReached", "Failed": "BackoffLimitExceeded"}
"""The conditions of Jobs that are over, with their reasons."""


class Jobs(Actor):
    """Runs Jobs."""

    def __init__(self, server: ApiServer, durations: Durations, wire: Wire | None = None) -> None:
        super().__init__(server, "jobcontroller", JOB, wire)
        self.durations = durations

    def see(self, version: Version) -> None:
        """Handle a change of a Job or of its pod."""
        document = version.after or version.before or {}
        if version.resource == JOB:
            self.touch((version.namespace, version.name))
        elif version.resource == POD:
            for owner in mappings(document["metadata"].get("ownerReferences")):
                if owner["kind"] == JOB.kind:
                    self.touch((version.namespace, owner["name"]))

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        status, spec = document["status"], document["spec"]
        if "deletionTimestamp" in document["metadata"] or spec["suspend"]:
            return None
        if any(one["type"] in ENDS for one in mappings(status.get("conditions"))):
            ttl = spec.get("ttlSecondsAfterFinished")
            return None if ttl is None else Action("expire", ttl, lambda: self._expire(place))
        counted = self._counted(document)
        if any(status.get(key) != value for key, value in counted.items()):
            return Action("count", self.durations.collect, lambda: self._count(place, document))
        if not counted["active"]:
            return Action("create", self.durations.collect, lambda: self._create(place, document))
        return None

    def _counted(self, job: Json) -> Json:
        """Its pods in numbers."""
        uid, namespace = job["metadata"]["uid"], job["metadata"]["namespace"]
        pods = [pod for place, pod in self.all(POD) if place[0] == namespace and uid in _owners(pod)]
        phases = [str(pod["status"].get("phase")) for pod in pods]
        living = [phase for phase in phases if phase in ("Pending", "Running")]
        return {"active": len(living), "succeeded": phases.count("Succeeded"), "failed": phases.count("Failed")}

    async def _count(self, place: ObjectKey, job: Json) -> None:
        now, counted = rfc3339(self.clock.now()), self._counted(job)
        status: Json = {"startTime": job["status"].get("startTime", now), **counted}
        if end := _end(job, counted):
            times = {"lastProbeTime": now, "lastTransitionTime": now}
            status["conditions"] = [{"type": end, "status": "True", "reason": ENDS[end], **times}]
            status |= {"completionTime": now} if end == "Complete" else {}
        body = msgspec.json.encode({"status": status})
        await self.api.patch(JOB, *place, body, PatchType.MERGE, subresource="status")

    async def _create(self, place: ObjectKey, job: Json) -> None:
        metadata, template = job["metadata"], job["spec"]["template"]
        owner = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": metadata["name"], "uid": metadata["uid"]}
        own = {
            "generateName": f"{metadata['name']}-",
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        }
        body = {"apiVersion": POD.api_version, "kind": POD.kind, "metadata": template["metadata"] | own}
        await self.api.create(POD, place[0], msgspec.json.encode(body | {"spec": template["spec"]}))

    async def _expire(self, place: ObjectKey) -> None:
        await self.api.delete_with(JOB, *place, {"propagationPolicy": "Background"})


def _end(job: Json, counted: Json) -> str:
    """Return the condition with which the Job ends; empty while it is active."""
    if counted["succeeded"]:
        return "Complete"
    return "Failed" if counted["failed"] > job["spec"]["backoffLimit"] else ""


def _owners(pod: Json) -> list[str]:
    return [str(owner["uid"]) for owner in mappings(pod["metadata"].get("ownerReferences"))]
