"""The pods and claims that a CloneSet creates, as documents (cloneset.md §4.5).

A new pod asks for both of Flotilla's readiness gates by itself, so that the pod webhook need not stand in the path of
CloneSet pods; and it starts as PreparingNormal, so that nothing counts it as available before it has a node.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.documents import mapping, sequence, strings
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Json
from flotilla_common.workload.lifecycle import initial_labels, state_annotations
from flotilla_common.workload.revisions import short_hash

KUBE_SYSTEM = "kube-system"


class ClaimTemplate(msgspec.Struct, frozen=True):
    """One volumeClaimTemplate; its name is also the name of the volume."""

    name: str
    document: Json

    def claim_name(self, cloneset: str, instance_id: str) -> str:
        """The name of an instance's claim."""
        return f"{self.name}-{cloneset}-{instance_id}"


def revision_labels(revision: str, *, short: bool) -> dict[str, str]:
    """The labels that put a pod on a revision. `short`: gate CloneSetShortHash."""
    hash_ = short_hash(revision)
    return {keys.REVISION_LABEL: hash_ if short else revision, keys.TEMPLATE_HASH_LABEL: hash_}


def claim_templates(cloneset: CloneSet) -> tuple[ClaimTemplate, ...]:
    """The claim templates that have a name."""
    documents = [mapping(msgspec.json.decode(raw)) for raw in cloneset.spec.volume_claim_templates]
    named = [(str(mapping(document.get("metadata")).get("name") or ""), document) for document in documents]
    return tuple(ClaimTemplate(name, document) for name, document in named if name)


def owner_reference(cloneset: CloneSet) -> Json:
    """The reference by which dependents name the CloneSet as their controller."""
    return {
        "apiVersion": CLONE_SET.api_version,
        "kind": CLONE_SET.kind,
        "name": cloneset.metadata.name,
        "uid": cloneset.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


class PodFactory(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the pods of one revision."""

    cloneset: CloneSet
    template: Json
    revision: str  # full name of the ControllerRevision
    claims: tuple[ClaimTemplate, ...]
    short_label: bool  # gate CloneSetShortHash
    ready_gate: bool  # whether pods ask for KruisePodReady
    now: datetime

    def name(self, instance_id: str) -> str:
        """The name of an instance's pod."""
        return f"{self.cloneset.metadata.name}-{instance_id}"

    def labels(self, instance_id: str) -> dict[str, str]:
        """The labels of an instance's pod."""
        return {
            **strings(mapping(self.template.get("metadata")).get("labels")),
            **revision_labels(self.revision, short=self.short_label),
            keys.INSTANCE_ID_LABEL: instance_id,
            **initial_labels(),
        }

    def pod(self, instance_id: str) -> Json:
        """The body of an instance's pod."""
        meta, spec = mapping(self.template.get("metadata")), mapping(self.template.get("spec"))
        metadata: Json = {
            "name": self.name(instance_id),
            "generateName": f"{self.cloneset.metadata.name}-",
            "namespace": self.cloneset.metadata.namespace,
            "labels": self.labels(instance_id),
            "annotations": {**mapping(meta.get("annotations")), **state_annotations(self.now)},
            "ownerReferences": [owner_reference(self.cloneset)],
        }
        if meta.get("finalizers"):
            metadata["finalizers"] = sequence(meta["finalizers"])
        gates = [*sequence(spec.get("readinessGates"))]
        for gate in (keys.IN_PLACE_READY, keys.POD_READY) if self.ready_gate else (keys.IN_PLACE_READY,):
            if {"conditionType": gate} not in gates:
                gates.append({"conditionType": gate})
        body: Json = {**spec, "readinessGates": gates}
        if self.claims:
            body["volumes"] = self._volumes(spec, instance_id)
        return {"apiVersion": POD.api_version, "kind": POD.kind, "metadata": metadata, "spec": body}

    def claim(self, template: ClaimTemplate, instance_id: str) -> Json:
        """The body of an instance's claim."""
        meta = mapping(template.document.get("metadata"))
        metadata: Json = {
            **meta,
            "name": template.claim_name(self.cloneset.metadata.name, instance_id),
            "namespace": self.cloneset.metadata.namespace,
            "labels": {
                **mapping(meta.get("labels")),
                **self.cloneset.spec.selector.match_labels,
                keys.INSTANCE_ID_LABEL: instance_id,
            },
            "ownerReferences": [*sequence(meta.get("ownerReferences")), owner_reference(self.cloneset)],
        }
        return {
            **template.document,
            "apiVersion": CLAIM.api_version,
            "kind": CLAIM.kind,
            "metadata": metadata,
        }

    def _volumes(self, spec: Mapping[str, Any], instance_id: str) -> list[Json]:
        mine = {template.name for template in self.claims}
        volumes: list[Json] = [
            {
                "name": template.name,
                "persistentVolumeClaim": {
                    "claimName": template.claim_name(self.cloneset.metadata.name, instance_id),
                    "readOnly": False,
                },
            }
            for template in self.claims
        ]
        return volumes + [volume for volume in sequence(spec.get("volumes")) if mapping(volume).get("name") not in mine]


def decode_template(document: msgspec.Raw) -> Json:
    """A pod template as a plain document; empty when it is none."""
    return mapping(msgspec.json.decode(document))


def revision_template(data: msgspec.Raw) -> Json:
    """The pod template that a ControllerRevision stores, with the marker that says how to apply it."""
    return mapping(mapping(decode_template(data).get("spec")).get("template"))
