"""Claims that are created from a workload's volumeClaimTemplates, one of each per pod, and the templates of a revision.

The data of a ControllerRevision are the pod template alone (common.md §7.1), so its claim templates are recorded in an
annotation while it is the newest one. Pods that are created from it later, behind a partition, get the claims that its
template mounts, even if templates were added or removed since. For a template that still exists the current version
counts: a claim outlives the revision of its pod.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim
from flotilla_common.api.documents import mapping, mappings, sequence
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import CLAIM_RECORD_ANNOTATION
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.api.resources import CLAIM, POD, REVISION
from flotilla_common.control.plan import Chain, Event, Intent, Json, Patch
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.pod_creation import revision_template
from flotilla_common.workload.revisions import RevisionChoice

MAX_ANNOTATIONS_BYTES = 256 * 1024
"""The apiserver's limit; a record that exceeds it with the other annotations is left out."""


class ClaimTemplate(msgspec.Struct, frozen=True):
    """One volumeClaimTemplate; its name is also the name of the volume."""

    name: str
    document: Json

    def claim_name(self, owner: str, suffix: str) -> str:
        """Return the name of a pod's claim; `suffix` is that of the pod's own name."""
        return f"{self.name}-{owner}-{suffix}"

    def volume(self, owner: str, suffix: str) -> Json:
        """Return the volume of the pod that has this claim."""
        claim = {"claimName": self.claim_name(owner, suffix), "readOnly": False}
        return {"name": self.name, "persistentVolumeClaim": claim}

    def claim(
        self, owner: str, suffix: str, namespace: str, labels: Mapping[str, str], owners: Sequence[Json] = ()
    ) -> Json:
        """Return the body of a pod's claim; `labels` and `owners` are added to the template's."""
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
    """Return the claim templates that have a name. Raises ValueError for an invalid one."""
    documents = [mapping(read_json(raw, object)) for raw in templates]
    named = [(str(mapping(document.get("metadata")).get("name") or ""), document) for document in documents]
    return tuple(ClaimTemplate(name, document) for name, document in named if name)


def hand_over(claim: PersistentVolumeClaim, pod: ObjectMeta) -> Patch:
    """Make the pod the claim's controller in place of the present one, on exactly the version that was read."""
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


def claim_record(templates: Sequence[msgspec.Raw], annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotation that records these templates beside `annotations`; empty if there is nothing to record."""
    if not templates:
        return {}
    text = _text(tuple(bytes(template) for template in templates))
    return {CLAIM_RECORD_ANNOTATION: text} if _fits(text, annotations) else {}


def keep_record(choice: RevisionChoice, record: Mapping[str, str]) -> Chain:
    """Return the write that updates the record of the newest revision.

    A revision that another program created, or that had no claims, has no record and is left alone.
    """
    meta, text = choice.update.metadata, record.get(CLAIM_RECORD_ANNOTATION)
    if choice.writes or meta.annotations.get(CLAIM_RECORD_ANNOTATION, text) == text:
        return ()
    if text is not None and not _fits(text, meta.annotations):
        return ()
    body = {"metadata": {"annotations": {CLAIM_RECORD_ANNOTATION: text}}}
    cause = f"claim templates of {meta.name}"
    return (patch_of(REVISION, meta, Intent.REVISION, cause, body=body, on_version=True),)


def claims_of_revision(revision: ControllerRevision, live: tuple[ClaimTemplate, ...]) -> tuple[ClaimTemplate, ...]:
    """Return the claim templates of an older revision: the recorded ones, or those of today that it mounts."""
    recorded = _read(revision.metadata.annotations.get(CLAIM_RECORD_ANNOTATION, ""))
    if recorded is None:
        mounted = _mounted(revision)
        return tuple(template for template in live if template.name in mounted)
    present = {template.name: template for template in live}
    return tuple(present.get(template.name, template) for template in recorded)


def _fits(text: str, annotations: Mapping[str, str]) -> bool:
    others = sum(len(key) + len(value.encode()) for key, value in annotations.items() if key != CLAIM_RECORD_ANNOTATION)
    return others + len(CLAIM_RECORD_ANNOTATION) + len(text.encode()) <= MAX_ANNOTATIONS_BYTES


@lru_cache(maxsize=1024)
def _text(templates: tuple[bytes, ...]) -> str:
    documents = [mapping(read_json(template, object)) for template in templates]
    kept = [{key: document[key] for key in ("metadata", "spec") if key in document} for document in documents]
    return msgspec.json.encode(kept, order="deterministic").decode()


@lru_cache(maxsize=1024)
def _read(text: str) -> tuple[ClaimTemplate, ...] | None:
    """Return the recorded templates; None without a valid record."""
    try:
        documents = read_json(text, list[msgspec.Raw])
        templates = claim_templates(documents)
    except ValueError:
        return None
    return templates if len(templates) == len(documents) else None


def _mounted(revision: ControllerRevision) -> set[str]:
    """Return the names of the volumes that the revision's containers use."""
    spec = mapping(revision_template(revision.data).get("spec"))
    containers = [*mappings(spec.get("initContainers")), *mappings(spec.get("containers"))]
    uses = (container.get(key) for container in containers for key in ("volumeMounts", "volumeDevices"))
    return {str(one.get("name")) for use in uses for one in mappings(use)}
