"""Builds the pods and claims that a CloneSet creates, as documents (cloneset.md §4.5).

A new pod already has both of Flotilla's readiness gates, so the pod webhook need not be in the path of CloneSet pods.
It starts as PreparingNormal, so that nothing counts it as available before it has a node.
"""

from datetime import datetime

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.documents import mapping, sequence, strings
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Json
from flotilla_common.workload.claims import ClaimTemplate
from flotilla_common.workload.lifecycle import initial_labels, state_annotations
from flotilla_common.workload.newpods import with_readiness_gates, with_volumes
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.revision_codec import short_hash


def revision_labels(revision: str, *, short: bool) -> dict[str, str]:
    """Return the labels that put a pod on a revision. `short`: gate CloneSetShortHash."""
    hash_ = short_hash(revision)
    return {keys.REVISION_LABEL: hash_ if short else revision, keys.TEMPLATE_HASH_LABEL: hash_}


class PodFactory(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the pods of one revision."""

    cloneset: CloneSet
    template: Json
    revision: str  # full name of the ControllerRevision
    claims: tuple[ClaimTemplate, ...]
    short_label: bool  # gate CloneSetShortHash
    ready_gate: bool  # whether pods get the readiness gate KruisePodReady
    now: datetime

    def name(self, instance_id: str) -> str:
        """Return the name of an instance's pod."""
        return f"{self.cloneset.metadata.name}-{instance_id}"

    def labels(self, instance_id: str) -> dict[str, str]:
        """Return the labels of an instance's pod."""
        return {
            **strings(mapping(self.template.get("metadata")).get("labels")),
            **revision_labels(self.revision, short=self.short_label),
            keys.INSTANCE_ID_LABEL: instance_id,
            **initial_labels(),
        }

    def pod(self, instance_id: str) -> Json:
        """Return the body of an instance's pod."""
        meta, spec = mapping(self.template.get("metadata")), mapping(self.template.get("spec"))
        metadata: Json = {
            "name": self.name(instance_id),
            "generateName": f"{self.cloneset.metadata.name}-",
            "namespace": self.cloneset.metadata.namespace,
            "labels": self.labels(instance_id),
            "annotations": {**mapping(meta.get("annotations")), **state_annotations(self.now)},
            "ownerReferences": [owner_reference(CLONE_SET, self.cloneset.metadata)],
        }
        if meta.get("finalizers"):
            metadata["finalizers"] = sequence(meta["finalizers"])
        names = (keys.IN_PLACE_READY, keys.POD_READY) if self.ready_gate else (keys.IN_PLACE_READY,)
        volumes = [template.volume(self.cloneset.metadata.name, instance_id) for template in self.claims]
        body = with_volumes(with_readiness_gates(spec, names), volumes)
        return {**POD.type_meta, "metadata": metadata, "spec": body}

    def claim(self, template: ClaimTemplate, instance_id: str) -> Json:
        """Return the body of an instance's claim."""
        meta = self.cloneset.metadata
        labels = {**self.cloneset.spec.selector.match_labels, keys.INSTANCE_ID_LABEL: instance_id}
        return template.claim(meta.name, instance_id, meta.namespace, labels, [owner_reference(CLONE_SET, meta)])
