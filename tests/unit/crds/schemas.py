"""Reads the fields of a kind's CRD by their paths."""

from collections.abc import Iterator
from typing import Any

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.kind import Kind

Node = dict[str, Any]

BOTH = ("v1alpha1", "v1beta1")
RESTRICTIONS = {"enum", "minimum", "maximum", "default"}
"""Members by which a schema itself refuses values, or fills them in."""


def walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield every node below this one with its path: `.spec.containers[].env{}`."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if "items" in node:
        yield from walk(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from walk(node["additionalProperties"], f"{path}{{}}")


def schema_of(kind: Kind, version: str) -> Node:
    """Return the schema of a version."""
    versions = {one["name"]: one for one in definition(kind)["spec"]["versions"]}
    return versions[version]["schema"]["openAPIV3Schema"]


def fields(kind: Kind, version: str) -> dict[str, Node]:
    """Return the nodes of a version's schema by path."""
    return dict(walk(schema_of(kind, version)))


def restricted(known: dict[str, Node]) -> list[str]:
    """Return the paths at which the schema itself refuses values, or fills them in."""
    return [path for path, node in known.items() if RESTRICTIONS & node.keys()]


def int_or_string(known: dict[str, Node]) -> set[str]:
    """Return the paths of the fields that are a number or a percentage."""
    return {path for path, node in known.items() if node.get("x-kubernetes-int-or-string")}
