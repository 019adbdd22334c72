"""The CRDs: structural, documented, and exactly the names, columns and subresources of the specification."""

from collections.abc import Iterator
from typing import Any

import pytest

from flotilla_common.api import crds
from flotilla_common.api.crds import schema

MANIFESTS = {manifest["metadata"]["name"]: manifest for manifest in crds.manifests()}
CLONE_SET = MANIFESTS["clonesets.apps.kruise.io"]
VERSIONS = {version["name"]: version for version in CLONE_SET["spec"]["versions"]}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_TYPES = {"object", "array", "string", "integer", "number", "boolean"}

Node = dict[str, Any]


def roots() -> list[Any]:
    return [
        pytest.param(version["schema"]["openAPIV3Schema"], id=f"{name}/{version['name']}")
        for name, manifest in MANIFESTS.items()
        for version in manifest["spec"]["versions"]
    ]


def walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if "items" in node:
        yield from walk(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from walk(node["additionalProperties"], f"{path}{{}}")


def structural_problem(node: Node, path: str) -> str:
    """What the apiserver would object to in this node."""
    if node.get("x-kubernetes-int-or-string"):
        return "" if node.get("anyOf") == _INT_OR_STRING and "type" not in node else "int-or-string"
    if node.get("type") not in _TYPES:
        return "no type"
    if {"$ref", "anyOf", "allOf", "oneOf", "not", "nullable"} & node.keys():
        return "logic or references"
    if "properties" in node and "additionalProperties" in node:
        return "properties and additionalProperties exclude each other"
    if node["type"] == "array" and "items" not in node:
        return "array without items"
    if path == ".metadata" and node != {"type": "object"}:
        return "metadata may not be described"
    if set(node.get("required", ())) - node.get("properties", {}).keys():
        return "requires a field that it does not have"
    return ""


@pytest.mark.parametrize("root", roots())
def test_schema_is_structural(root: Node):
    problems = {path: problem for path, node in walk(root) if (problem := structural_problem(node, path))}
    assert problems == {}
    assert root["type"] == "object"


@pytest.mark.parametrize("root", roots())
def test_every_field_is_described(root: Node):
    bare = [path for path, node in walk(root) if path and path[-1] not in "]}" and path != ".metadata"]
    missing = [path for path, node in walk(root) if path in bare and not node.get("description", "").endswith(".")]
    assert missing == []


@pytest.mark.parametrize("root", roots())
def test_spec_itself_is_never_required(root: Node):
    assert "required" not in root


def test_clone_set_names():
    assert CLONE_SET["spec"]["names"] == {
        "kind": "CloneSet",
        "listKind": "CloneSetList",
        "plural": "clonesets",
        "singular": "cloneset",
        "shortNames": ["clone"],
    }
    assert (CLONE_SET["spec"]["group"], CLONE_SET["spec"]["scope"]) == ("apps.kruise.io", "Namespaced")


def test_both_versions_are_served_and_the_newer_one_is_stored():
    assert {name: (version["served"], version["storage"]) for name, version in VERSIONS.items()} == {
        "v1alpha1": (True, False),
        "v1beta1": (True, True),
    }


def test_conversion_is_by_webhook_through_the_service():
    conversion = CLONE_SET["spec"]["conversion"]
    assert conversion["strategy"] == "Webhook"
    assert conversion["webhook"]["conversionReviewVersions"] == ["v1", "v1beta1"]
    service = {"namespace": "kruise-system", "name": "kruise-webhook-service", "port": 443, "path": "/convert"}
    assert conversion["webhook"]["clientConfig"] == {"service": service}


COLUMNS = """\
DESIRED integer .spec.replicas 0
UPDATED integer .status.updatedReplicas 0
UPDATED_READY integer .status.updatedReadyReplicas 0
UPDATED_AVAILABLE integer .status.updatedAvailableReplicas 0
READY integer .status.readyReplicas 0
TOTAL integer .status.replicas 0
AGE date .metadata.creationTimestamp 0
CONTAINERS string .spec.template.spec.containers[*].name 1
IMAGES string .spec.template.spec.containers[*].image 1
SELECTOR string .status.labelSelector 1
"""


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_clone_set_columns_and_subresources(version: Node):
    columns = version["additionalPrinterColumns"]
    lines = [f"{c['name']} {c['type']} {c['jsonPath']} {c.get('priority', 0)}" for c in columns]
    assert "\n".join(lines) + "\n" == COLUMNS
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.labelSelector",
        },
    }


def fields(version: str) -> dict[str, Node]:
    return dict(walk(VERSIONS[version]["schema"]["openAPIV3Schema"]))


@pytest.mark.parametrize("version", VERSIONS)
def test_clone_set_required_fields(version: str):
    known = fields(version)
    assert known[".spec"]["required"] == ["selector", "template"]
    assert set(known[".status"]["required"]) == {
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "updatedReadyReplicas",
    }


@pytest.mark.parametrize(
    ("version", "prefix"),
    [
        pytest.param("v1alpha1", ".spec.updateStrategy", id="v1alpha1"),
        pytest.param("v1beta1", ".spec.updateStrategy.rollingUpdate", id="v1beta1"),
    ],
)
def test_clone_set_int_or_string_fields(version: str, prefix: str):
    found = {path for path, node in fields(version).items() if node.get("x-kubernetes-int-or-string")}
    assert found == {
        ".spec.scaleStrategy.maxUnavailable",
        f"{prefix}.maxUnavailable",
        f"{prefix}.maxSurge",
        f"{prefix}.partition",
        f"{prefix}.inPlaceUpdateStrategy.imagePreDownloadParallelism",
    }


def test_clone_set_fields_that_differ_between_the_versions():
    alpha, beta = fields("v1alpha1"), fields("v1beta1")
    rollout = {
        path for path in alpha if path.startswith(".spec.updateStrategy.") and path != ".spec.updateStrategy.type"
    }
    assert set(alpha) - set(beta) == rollout | {".spec.scaleStrategy.disablePVCReuse"}
    moved = {path.replace(".updateStrategy.", ".updateStrategy.rollingUpdate.") for path in rollout}
    assert set(beta) - set(alpha) == moved | {
        ".spec.updateStrategy.rollingUpdate",
        ".spec.updateStrategy.rollingUpdate.podUpdatePolicy",
        ".spec.scaleStrategy.enablePVCReuse",
        ".spec.scaleStrategy.excludePreparingDelete",
    }


def test_the_only_schema_default_is_no_claim_reuse_in_v1beta1():
    defaults = {
        (version, path): node["default"]
        for version in VERSIONS
        for path, node in fields(version).items()
        if "default" in node
    }
    assert defaults == {("v1beta1", ".spec.scaleStrategy.enablePVCReuse"): False}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", [".spec.template", ".spec.volumeClaimTemplates[]"])
def test_embedded_objects_keep_unknown_fields(version: str, path: str):
    node = fields(version)[path]
    assert node["x-kubernetes-preserve-unknown-fields"] is True
    assert "properties" not in node


@pytest.mark.parametrize("version", VERSIONS)
def test_no_enums_because_admission_checks_them(version: str):
    assert [path for path, node in fields(version).items() if "enum" in node] == []


def test_the_check_itself_finds_what_is_not_structural():
    assert structural_problem({"properties": {}}, ".x") == "no type"
    assert structural_problem({"anyOf": _INT_OR_STRING, "type": "string", "x-kubernetes-int-or-string": True}, ".x")
    assert structural_problem(schema.struct("Doc.", ("gone",)), ".x")
