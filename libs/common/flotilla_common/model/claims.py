"""Claims are bound, and kept while a pod uses them."""

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.model.store import Objects

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
