"""Models claims: a provisioner binds and expands them, and claims in use by a pod with a node are protected."""

from collections.abc import Iterable

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.quantity import parse
from flotilla_common.api.resources import CLAIM, POD, Resource
from flotilla_common.model import writes
from flotilla_common.model.kubelet import has_ended
from flotilla_common.model.store import Objects, Place, place_of

PROTECTION = "kubernetes.io/pvc-protection"
"""The finalizer that keeps a claim while a pod uses it."""


def bound(claim: Json) -> Json:
    """Return the claim bound to a volume of the requested size. A bound claim grows, and never shrinks."""
    spec, status = member(claim, "spec"), member(claim, "status")
    asked, has = member(spec, "resources", "requests"), member(status, "capacity")
    short = {name: size for name, size in asked.items() if parse(str(has.get(name, 0))) < parse(str(size))}
    if status.get("phase") == "Bound" and not short:
        return claim
    rest = {key: value for key, value in status.items() if key != "conditions"}  # they report a resize under way
    spec = {"volumeName": f"pvc-{claim['metadata'].get('uid')}"} | spec
    return claim | {"spec": spec, "status": rest | {"phase": "Bound", "capacity": has | short}}


def used_by(pod: Json) -> list[str]:
    """Return the names of the claims that a pod's volumes refer to."""
    sources = [member(volume, "persistentVolumeClaim") for volume in mappings(pod["spec"].get("volumes"))]
    return [str(source["claimName"]) for source in sources if "claimName" in source]


def is_released(claim: Json, pods: Iterable[Json]) -> bool:
    """Report whether a deleted claim is kept by its protection only, though no pod uses it any more."""
    metadata = claim["metadata"]
    if "deletionTimestamp" not in metadata or PROTECTION not in metadata.get("finalizers", ()):
        return False
    place = metadata.get("namespace"), metadata["name"]
    users = (pod for pod in pods if pod["spec"].get("nodeName") and not has_ended(pod))
    return not any((pod["metadata"].get("namespace"), name) == place for pod in users for name in used_by(pod))


def released(claim: Json) -> Json:
    """Return the claim without its protection."""
    rest = [name for name in claim["metadata"]["finalizers"] if name != PROTECTION]
    return claim | {"metadata": claim["metadata"] | {"finalizers": rest}}


class Claims:
    """Binds, expands and releases claims."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._due: dict[Place, None] | None = None  # None: all of them
        objects.listen(self._see)

    def step(self) -> bool:
        """Bind, expand and release changed claims; report whether any changed."""
        due, self._due = self._due, {}
        found = self._objects.all(CLAIM) if due is None else [self._objects.get(CLAIM, *place) for place in due]
        moved = [self._step(claim) for claim in found if claim is not None]
        return any(moved)

    def _step(self, claim: Json) -> bool:
        if "deletionTimestamp" not in claim["metadata"]:
            after = bound(claim)
        else:
            after = released(claim) if is_released(claim, self._objects.all(POD)) else claim
        return after != claim and writes.store(self._objects, CLAIM, claim, after) != claim

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        if self._due is not None and resource == CLAIM and after is not None:
            self._due[place_of(after)] = None
        elif self._due is not None and resource == POD and before is not None:
            namespace = before["metadata"].get("namespace", "")
            self._due |= {(namespace, name): None for name in used_by(before)}
