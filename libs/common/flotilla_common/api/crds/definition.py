"""From the schemas of a kind to its CustomResourceDefinition (install.md §2)."""

from typing import Any

import msgspec

from flotilla_common.api.crds.schema import Schema, string, struct
from flotilla_common.api.kinds.kind import Kind

SCALE: Schema = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.labelSelector",
}
"""The scale subresource of every kind that has one: `kubectl scale` and the HorizontalPodAutoscaler use it."""


class Column(msgspec.Struct, frozen=True):
    """What `kubectl get` prints. Priority 1 shows with `-o wide` only."""

    name: str
    type: str
    path: str
    priority: int = 0

    def manifest(self) -> Schema:
        """The entry of additionalPrinterColumns."""
        column: Schema = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return column | {"priority": self.priority} if self.priority else column


AGE = Column("AGE", "date", ".metadata.creationTimestamp")
CONTAINERS = Column("CONTAINERS", "string", ".spec.template.spec.containers[*].name", priority=1)
IMAGES = Column("IMAGES", "string", ".spec.template.spec.containers[*].image", priority=1)


class Version(msgspec.Struct, frozen=True):
    """One served version of a kind; every one has the status subresource."""

    name: str
    spec: Schema
    status: Schema
    columns: tuple[Column, ...] = ()

    def manifest(self, kind: Kind) -> Schema:
        """The entry of spec.versions."""
        return {
            "name": self.name,
            "served": True,
            "storage": self.name == kind.resource.version,
            "additionalPrinterColumns": [column.manifest() for column in self.columns],
            "subresources": {"status": {}} | ({"scale": SCALE} if kind.scale else {}),
            "schema": {"openAPIV3Schema": _document(kind.doc, self.spec, self.status)},
        }


def definition(kind: Kind) -> Schema:
    """The manifest of the kind's CRD."""
    resource, rules = kind.resource, kind.rules()
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": kind.singular,
    }
    spec: Schema = {
        "group": resource.group,
        "names": names | ({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "versions": [rules.schema(version).manifest(kind) for version in kind.versions],
        "conversion": {"strategy": "Webhook", "webhook": _webhook()} if rules.convert else {"strategy": "None"},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.definition_name},
        "spec": spec,
    }


def _webhook() -> Schema:
    """Through the Service, unless the installation or the webhook says another way. The caBundle is the webhook's."""
    service = {"namespace": "kruise-system", "name": "kruise-webhook-service", "port": 443, "path": "/convert"}
    return {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1", "v1beta1"]}


def _document(doc: str, spec: Schema, status: Schema) -> Schema:
    return struct(
        doc,
        apiVersion=string("The version that this object is written in."),
        kind=string("The kind of this object."),
        metadata={"type": "object"},
        spec=spec,
        status=status,
    )
