"""Claims that are made from a workload's volumeClaimTemplates, one of each per pod."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from flotilla_common.api.core import PersistentVolumeClaim
from flotilla_common.api.documents import mapping, sequence
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Event, Intent, Json, Patch
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.ownership import owner_reference


class ClaimTemplate(msgspec.Struct, frozen=True):
    """One volumeClaimTemplate; its name is also the name of the volume."""

    name: str
    document: Json

    def claim_name(self, owner: str, suffix: str) -> str:
        """The name of a pod's claim; `suffix` is that of the pod's own name."""
        return f"{self.name}-{owner}-{suffix}"

    def volume(self, owner: str, suffix: str) -> Json:
        """The volume of the pod that has this claim."""
        claim = {"claimName": self.claim_name(owner, suffix), "readOnly": False}
        return {"name": self.name, "persistentVolumeClaim": claim}

    def claim(
        self, owner: str, suffix: str, namespace: str, labels: Mapping[str, str], owners: Sequence[Json] = ()
    ) -> Json:
        """The body of a pod's claim. `labels` and `owners` come on top of those of the template."""
        meta = mapping(self.document.get("metadata"))
        metadata: Json = {
            **meta,
            "name": self.claim_name(owner, suffix),
            "namespace": namespace,
            "labels": {**mapping(meta.get("labels")), **labels},
            "ownerReferences": [*sequence(meta.get("ownerReferences")), *owners],
        }
        return {**self.document, **CLAIM.type_meta, "metadata": metadata}


def claim_templates(templates: Iterable[msgspec.Raw]) -> tuple[ClaimTemplate, ...]:
    """Return the claim templates that have a name. Raises ValueError for one that cannot be read."""
    documents = [mapping(read_json(raw, object)) for raw in templates]
    named = [(str(mapping(document.get("metadata")).get("name") or ""), document) for document in documents]
    return tuple(ClaimTemplate(name, document) for name, document in named if name)


def hand_over(claim: PersistentVolumeClaim, pod: ObjectMeta) -> Patch:
    """Make the pod the claim's controller in place of the present one, on exactly the claim that was read."""
    controller = controller_of(claim.metadata)
    references = claim.metadata.owner_references
    others = [msgspec.to_builtins(reference) for reference in references if reference != controller]
    return patch_of(
        CLAIM,
        claim.metadata,
        Intent.CLAIM,
        "hand the claim to its leaving pod",
        pods=(pod.name,),
        body={"metadata": {"ownerReferences": [*others, owner_reference(POD, pod)]}},
        on_version=True,
        on_failure=Event("FailedUpdate", f"failed to update PVC {claim.metadata.name}: ", warning=True),
    )
