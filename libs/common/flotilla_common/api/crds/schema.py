"""Functions that build structural OpenAPI schemas, and the versions of a kind in its CustomResourceDefinition.

Every node has a type, or takes an integer or a string. Each function takes the description first. The pod templates
inside workloads are `anything`: unknown fields survive, newer pod fields work, and admission does the validation
(install.md §13).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

Schema = dict[str, Any]


def integer(doc: str, bits: int = 32, minimum: int | None = None) -> Schema:
    """Return the schema of a whole number of 32 or 64 bits."""
    schema: Schema = {"description": doc, "type": "integer", "format": f"int{bits}"}
    return schema if minimum is None else schema | {"minimum": minimum}


def string(doc: str, enum: Sequence[str] = ()) -> Schema:
    """Return the schema of a text; with `enum` of one of these only."""
    schema: Schema = {"description": doc, "type": "string"}
    return schema | {"enum": list(enum)} if enum else schema


def boolean(doc: str, default: bool | None = None) -> Schema:
    """Return the schema of true or false; with a default, the apiserver fills it in."""
    schema: Schema = {"description": doc, "type": "boolean"}
    return schema if default is None else schema | {"default": default}


def time(doc: str) -> Schema:
    """Return the schema of a point in time, RFC 3339."""
    return {"description": doc, "type": "string", "format": "date-time"}


def int_or_string(doc: str) -> Schema:
    """Return the schema of a number or a text."""
    return {"description": doc, "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def array(doc: str, items: Schema) -> Schema:
    """Return the schema of a list, replaced as a whole by server-side apply."""
    return {"description": doc, "type": "array", "items": items}


def strings(doc: str) -> Schema:
    """Return the schema of a list of texts."""
    return array(doc, {"type": "string"})


def mapping(doc: str) -> Schema:
    """Return the schema of a map of texts."""
    return dictionary(doc, {"type": "string"})


def dictionary(doc: str, values: Schema) -> Schema:
    """Return the schema of a map of values of one type."""
    return {"description": doc, "type": "object", "additionalProperties": values}


def struct(doc: str, required: Sequence[str] = (), /, **properties: Schema) -> Schema:
    """Return the schema of an object with these fields; the apiserver drops others. `required` names mandatory ones."""
    schema: Schema = {"description": doc, "type": "object", "properties": properties}
    return schema | {"required": sorted(required)} if required else schema


def anything(doc: str) -> Schema:
    """Return the schema of an object whose fields are all kept."""
    return {"description": doc, "type": "object", "x-kubernetes-preserve-unknown-fields": True}


def label_selector(doc: str) -> Schema:
    """Return the schema of a query over labels."""
    expression = struct(
        "One condition on one label.",
        ("key", "operator"),
        key=string("The label's key."),
        operator=string("In, NotIn, Exists or DoesNotExist."),
        values=strings("The values for In and NotIn."),
    )
    selector = struct(
        doc,
        matchLabels=mapping("Labels that must have these values."),
        matchExpressions=array("Conditions that must all hold.", expression),
    )
    return selector | {"x-kubernetes-map-type": "atomic"}


def conditions(doc: str, written: str = "lastUpdateTime", reason: str = "The cause, in one CamelCase word.") -> Schema:
    """Return the schema of a workload's conditions. `written`: the name of the time of the last write."""
    properties = {
        "type": string("The type of the condition."),
        "status": string("True, False or Unknown."),
        written: time("When the condition was last written."),
        "lastTransitionTime": time("When the status last changed."),
        "reason": string(reason),
        "message": string("The cause, for people."),
    }
    return array(doc, struct("One aspect of the state.", ("type", "status"), **properties))


def job_conditions(doc: str) -> Schema:
    """Return the schema of a job's conditions."""
    return conditions(doc, "lastProbeTime", "The cause, in one word.")


def standard_conditions(doc: str) -> Schema:
    """Return the schema of conditions as Kubernetes' own kinds have them: one of each type."""
    condition = struct(
        "One aspect of the state.",
        ("type", "status", "lastTransitionTime", "reason", "message"),
        type=string("The type of the condition."),
        status=string("True, False or Unknown.", enum=("True", "False", "Unknown")),
        observedGeneration=integer("The generation of the spec that the condition refers to.", bits=64, minimum=0),
        lastTransitionTime=time("When the status last changed."),
        reason=string("The cause, in one CamelCase word."),
        message=string("The cause, for people."),
    )
    return array(doc, condition) | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


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
