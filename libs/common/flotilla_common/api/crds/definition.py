"""From the schemas of a kind to its CustomResourceDefinition (install.md §2)."""

from collections.abc import Sequence
from typing import Any

import msgspec

from flotilla_common.api.crds.schema import Schema, string, struct
from flotilla_common.api.resources import Resource

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
    scale: bool = False

    def manifest(self, doc: str, storage: bool) -> Schema:
        """The entry of spec.versions."""
        return {
            "name": self.name,
            "served": True,
            "storage": storage,
            "additionalPrinterColumns": [column.manifest() for column in self.columns],
            "subresources": {"status": {}} | ({"scale": SCALE} if self.scale else {}),
            "schema": {"openAPIV3Schema": _document(doc, self.spec, self.status)},
        }


def definition(
    resource: Resource, doc: str, versions: Sequence[Version], *, short_names: Sequence[str] = (), converts: bool = True
) -> Schema:
    """The manifest. `resource.version` is the storage version; `converts` asks for conversion by webhook."""
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    spec: Schema = {
        "group": resource.group,
        "names": names | ({"shortNames": list(short_names)} if short_names else {}),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "versions": [version.manifest(doc, version.name == resource.version) for version in versions],
        "conversion": {"strategy": "Webhook", "webhook": _webhook()} if converts else {"strategy": "None"},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": spec,
    }


def _webhook() -> Schema:
    """Through the Service, unless the installation or the webhook says another way. The caBundle is the webhook's."""
    service = {"namespace": "kruise-system", "name": "kruise-webhook-service", "port": 443, "path": "/convert"}
    return {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1", "v1beta1"]}


def _document(doc: str, spec: Schema, status: Schema) -> Schema:
    return struct(
        doc,
        {
            "apiVersion": string("The version that this object is written in."),
            "kind": string("The kind of this object."),
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    )
