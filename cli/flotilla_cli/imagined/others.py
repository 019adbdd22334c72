"""What else lives in a cluster and matters to plans: claims are bound and protected, dependents go with their owners,
nodes pull the images that they are asked for."""

from flotilla_cli.imagined.objects import Objects
from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, SUCCEEDED
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import CLAIM, POD, Resource

_PROTECTION = "kubernetes.io/pvc-protection"


class Claims:
    """Provisioner and claim protection."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def step(self) -> bool:
        """Bind what is new, and let go what is deleted and that no pod uses."""
        moved = False
        for claim in self._objects.all(CLAIM):
            if "deletionTimestamp" in claim["metadata"]:
                if claim["metadata"].get("finalizers") == [_PROTECTION] and not self._used(claim):
                    self._objects.remove(CLAIM, claim)
                    moved = True
            elif "status" not in claim:
                capacity = member(claim, "spec", "resources").get("requests", {})
                bound = {"phase": "Bound", "capacity": capacity}
                metadata = claim["metadata"] | {"finalizers": [_PROTECTION]}
                self._objects.put(CLAIM, claim | {"metadata": metadata, "status": bound})
                moved = True
        return moved

    def _used(self, claim: Json) -> bool:
        namespace, name = claim["metadata"].get("namespace"), claim["metadata"]["name"]
        return any(
            member(volume, "persistentVolumeClaim").get("claimName") == name
            for pod in self._objects.all(POD)
            if pod["metadata"].get("namespace") == namespace
            for volume in mappings(pod["spec"].get("volumes"))
        )


class Garbage:
    """The garbage collector: what has only owners that are gone goes, too."""

    def __init__(self, objects: Objects, resources: dict[str, Resource]) -> None:
        self._objects = objects
        self._resources = resources
        self._gone: set[str] = set()
        objects.listen(self._see)

    def step(self) -> bool:
        """Collect the dependents of what has gone since."""
        gone, self._gone = self._gone, set()
        found = [one for one in self._objects.everything() if gone and _all_owners_in(one[1], gone)]
        for kind, document in found:
            self._objects.remove(self._resources[kind], document)
        return bool(found)

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        self._resources.setdefault(resource.id, resource)
        if after is None and before is not None:
            self._gone.add(before["metadata"]["uid"])


def _all_owners_in(document: Json, uids: set[str]) -> bool:
    owners = mappings(document["metadata"].get("ownerReferences"))
    return bool(owners) and all(owner.get("uid") in uids for owner in owners)


class Agents:
    """The node agents: every pull succeeds. Those that never said anything stay silent."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def step(self) -> bool:
        """Answer the tasks that are open."""
        moved = False
        for image in self._objects.all(NODE_IMAGE):
            if "desired" in member(image, "status") and (after := self._answered(image)) != image:
                self._objects.put(NODE_IMAGE, after)
                moved = True
        return moved

    def _answered(self, image: Json) -> Json:
        status, now = member(image, "status"), rfc3339(self._objects.clock.now())
        held = member(status, "imageStatuses")
        answers: Json = {}
        for name, spec in member(image, "spec", "images").items():
            known = {one["tag"]: one for one in mappings(member(held, name).get("tags"))}
            tags = [_pulled(tag, known.get(tag["tag"], {}), now) for tag in mappings(spec.get("tags"))]
            answers[name] = {"tags": tags}
        return image | {"status": status | {"imageStatuses": answers}} if answers != held else image


def _pulled(task: Json, entry: Json, now: str) -> Json:
    """The entry of a task that is done; one that is over stays."""
    version = task.get("version", 0)
    if entry.get("version", 0) == version and "completionTime" in entry:
        return entry
    times = {"startTime": now, "completionTime": now}
    return {"tag": task["tag"], "phase": SUCCEEDED, "progress": 100, "version": version, **times}
