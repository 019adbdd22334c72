"""The CRDs: structural, documented, and exactly the names, columns and subresources of the specification."""

from typing import Any

import pytest

from flotilla_common.api import crds
from flotilla_common.api.crds import schema
from tests.unit.crds.schemas import BOTH, Node, walk

MANIFESTS = {manifest["metadata"]["name"]: manifest for manifest in crds.manifests()}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_TYPES = {"object", "array", "string", "integer", "number", "boolean"}


def roots() -> list[Any]:
    return [
        pytest.param(version["schema"]["openAPIV3Schema"], id=f"{name}/{version['name']}")
        for name, manifest in MANIFESTS.items()
        for version in manifest["spec"]["versions"]
    ]


def structural_problem(node: Node, path: str) -> str:
    """Return the objection of the apiserver to this node."""
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


def columns(text: str) -> list[tuple[str, str, str, int]]:
    """Return printed columns, of which those that end with `wide` are shown by `-o wide` only."""
    rows = (line.split() for line in text.strip().splitlines())
    return [(name, kind, path, len(wide)) for name, kind, path, *wide in rows]


WEBHOOK, NONE = "Webhook", "None"
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.labelSelector",
}
CLONE_SET = """
DESIRED integer .spec.replicas
UPDATED integer .status.updatedReplicas
UPDATED_READY integer .status.updatedReadyReplicas
UPDATED_AVAILABLE integer .status.updatedAvailableReplicas
READY integer .status.readyReplicas
TOTAL integer .status.replicas
AGE date .metadata.creationTimestamp
CONTAINERS string .spec.template.spec.containers[*].name wide
IMAGES string .spec.template.spec.containers[*].image wide
SELECTOR string .status.labelSelector wide
"""
STATEFUL_SET = """
DESIRED integer .spec.replicas
CURRENT integer .status.replicas
UPDATED integer .status.updatedReplicas
READY integer .status.readyReplicas
AGE date .metadata.creationTimestamp
CONTAINERS string .spec.template.spec.containers[*].name wide
IMAGES string .spec.template.spec.containers[*].image wide
"""
DAEMON_SET = """
DESIRED integer .status.desiredNumberScheduled
CURRENT integer .status.currentNumberScheduled
READY integer .status.numberReady
UP-TO-DATE integer .status.updatedNumberScheduled
AVAILABLE integer .status.numberAvailable
AGE date .metadata.creationTimestamp
CONTAINERS string .spec.template.spec.containers[*].name wide
IMAGES string .spec.template.spec.containers[*].image wide
"""
SIDECAR_SET = """
MATCHED integer .status.matchedPods
UPDATED integer .status.updatedPods
READY integer .status.readyPods
AGE date .metadata.creationTimestamp
"""
RECREATE_REQUEST = r"""
PHASE string .status.phase
POD string .spec.podName
NODE string .metadata.labels.crr\.apps\.kruise\.io/node-name
AGE date .metadata.creationTimestamp
"""
DISTRIBUTION = """
TOTAL integer .status.desired
SUCCEED integer .status.succeeded
FAILED integer .status.failed
"""
EPHEMERAL_JOB = """
STATUS string .status.phase
MATCH integer .status.match
SUCCEED integer .status.succeeded
FAILED integer .status.failed
RUNNING integer .status.running
WAITING integer .status.waiting
AGE date .metadata.creationTimestamp
"""
BROADCAST_JOB = """
Desired integer .status.desired
Active integer .status.active
Succeeded integer .status.succeeded
Failed integer .status.failed
AGE date .metadata.creationTimestamp
"""
CRON_JOB = """
Schedule string .spec.schedule
Type string .status.type
LastScheduleTime date .status.lastScheduleTime
AGE date .metadata.creationTimestamp
"""
CRDS = {
    "CloneSet": ("Namespaced", ["clone"], WEBHOOK, BOTH, SCALE, CLONE_SET),
    "StatefulSet": ("Namespaced", ["sts", "asts"], WEBHOOK, BOTH, SCALE, STATEFUL_SET),
    "DaemonSet": ("Namespaced", ["daemon", "ads"], WEBHOOK, BOTH, None, DAEMON_SET),
    "SidecarSet": ("Cluster", [], WEBHOOK, BOTH, None, SIDECAR_SET),
    "ContainerRecreateRequest": ("Namespaced", ["crr"], WEBHOOK, BOTH, None, RECREATE_REQUEST),
    "PersistentPodState": ("Namespaced", [], WEBHOOK, BOTH, None, ""),
    "ResourceDistribution": ("Cluster", ["distributor"], WEBHOOK, BOTH, None, DISTRIBUTION),
    "EphemeralJob": ("Namespaced", ["ejob"], NONE, ["v1alpha1"], None, EPHEMERAL_JOB),
    "BroadcastJob": ("Namespaced", ["bcj"], NONE, BOTH, None, BROADCAST_JOB),
    "AdvancedCronJob": ("Namespaced", ["acj"], WEBHOOK, BOTH, None, CRON_JOB),
    "PodProbeMarker": ("Namespaced", [], NONE, ["v1alpha1"], None, ""),
    "NodePodProbe": ("Cluster", [], NONE, ["v1alpha1"], None, ""),
}
"""Scope, short names, conversion, versions, scale and columns; docs/adr/0034 gives the reason for AdvancedCronJob."""


@pytest.mark.parametrize("kind", CRDS)
def test_names_versions_and_columns(kind: str):
    scope, short, conversion, versions, scale, printed = CRDS[kind]
    spec = MANIFESTS[f"{kind.lower()}s.apps.kruise.io"]["spec"]
    names = {"kind": kind, "listKind": f"{kind}List", "plural": f"{kind.lower()}s", "singular": kind.lower()}
    assert spec["names"] == names | ({"shortNames": short} if short else {})
    assert (spec["group"], spec["scope"], spec["conversion"]["strategy"]) == ("apps.kruise.io", scope, conversion)
    assert (spec["conversion"] == {"strategy": "None"}) == (conversion == NONE)
    newest = versions[-1]
    assert [(one["name"], one["served"], one["storage"]) for one in spec["versions"]] == [
        (name, True, name == newest) for name in versions
    ]
    for version in spec["versions"]:
        shown = version["additionalPrinterColumns"]
        found = [(one["name"], one["type"], one["jsonPath"], one.get("priority", 0)) for one in shown]
        assert found == columns(printed)
        assert version["subresources"] == {"status": {}} | ({"scale": scale} if scale else {})


@pytest.mark.parametrize("kind", CRDS)
def test_conversion_is_by_webhook_through_the_service(kind: str):
    conversion = MANIFESTS[f"{kind.lower()}s.apps.kruise.io"]["spec"]["conversion"]
    service = {"namespace": "kruise-system", "name": "kruise-webhook-service", "port": 443, "path": "/convert"}
    if conversion["strategy"] == WEBHOOK:
        assert conversion["webhook"]["conversionReviewVersions"] == ["v1", "v1beta1"]
        assert conversion["webhook"]["clientConfig"] == {"service": service}


def test_the_check_itself_finds_what_is_not_structural():
    assert structural_problem({"properties": {}}, ".x") == "no type"
    assert structural_problem({"anyOf": _INT_OR_STRING, "type": "string", "x-kubernetes-int-or-string": True}, ".x")
    assert structural_problem(schema.struct("Doc.", ("gone",)), ".x")
