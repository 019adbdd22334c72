"""A version of a kind in its CustomResourceDefinition: schemas, and the columns that kubectl prints."""

import msgspec

from flotilla_common.api.crds.schema import Schema, string, struct

SCALE: Schema = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.labelSelector",
}
"""The scale subresource of every kind that has one, for `kubectl scale` and the HorizontalPodAutoscaler."""


class Column(msgspec.Struct, frozen=True):
    """A column that `kubectl get` prints. Priority 1 shows with `-o wide` only."""

    name: str
    type: str
    path: str
    priority: int = 0

    def manifest(self) -> Schema:
        """Return the entry of additionalPrinterColumns."""
        column: Schema = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return column | {"priority": self.priority} if self.priority else column


AGE = Column("AGE", "date", ".metadata.creationTimestamp")
CONTAINERS = Column("CONTAINERS", "string", ".spec.template.spec.containers[*].name", priority=1)
IMAGES = Column("IMAGES", "string", ".spec.template.spec.containers[*].image", priority=1)


class Version(msgspec.Struct, frozen=True):
    """One served version of a kind; every version has the status subresource."""

    name: str
    spec: Schema
    status: Schema
    columns: tuple[Column, ...] = ()

    def manifest(self, doc: str, *, stored: bool, scale: bool) -> Schema:
        """Return the entry of spec.versions, given the kind's description."""
        return {
            "name": self.name,
            "served": True,
            "storage": stored,
            "additionalPrinterColumns": [column.manifest() for column in self.columns],
            "subresources": {"status": {}} | ({"scale": SCALE} if scale else {}),
            "schema": {"openAPIV3Schema": _document(doc, self.spec, self.status)},
        }


def _document(doc: str, spec: Schema, status: Schema) -> Schema:
    return struct(
        doc,
        apiVersion=string("The version of this object."),
        kind=string("The kind of this object."),
        metadata={"type": "object"},
        spec=spec,
        status=status,
    )
