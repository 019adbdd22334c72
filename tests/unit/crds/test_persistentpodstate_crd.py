"""The CRD of PersistentPodState: names, and what the versions differ in (persistentpodstate.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.persistentpodstate.kind import KIND
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
VERSIONS = {version["name"]: version for version in SPEC["versions"]}
KEYS = {"v1alpha1": "nodeTopologyKeys", "v1beta1": "keys"}


def fields(version: str) -> dict[str, Any]:
    return dict(walk(VERSIONS[version]["schema"]["openAPIV3Schema"]))


def test_names_scope_and_conversion():
    assert SPEC["names"] == {
        "kind": "PersistentPodState",
        "listKind": "PersistentPodStateList",
        "plural": "persistentpodstates",
        "singular": "persistentpodstate",
    }
    assert (SPEC["group"], SPEC["scope"], SPEC["conversion"]["strategy"]) == ("apps.kruise.io", "Namespaced", "Webhook")
    assert {name: (one["served"], one["storage"]) for name, one in VERSIONS.items()} == {
        "v1alpha1": (True, False),
        "v1beta1": (True, True),
    }


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_kubectl_prints_its_own_columns(version: Any):
    assert version["additionalPrinterColumns"] == []
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("version", VERSIONS)
def test_required_fields(version: str):
    required = {path: node["required"] for path, node in fields(version).items() if "required" in node}
    assert required == {
        ".spec": ["targetRef"],
        ".spec.targetRef": ["apiVersion", "kind", "name"],
        ".spec.requiredPersistentTopology": [KEYS[version]],
        ".spec.preferredPersistentTopology[]": ["preference", "weight"],
        ".spec.preferredPersistentTopology[].preference": [KEYS[version]],
        ".spec.persistentPodAnnotations[]": ["key"],
        ".status": ["observedGeneration"],
    }


def test_only_the_lists_of_keys_have_other_names():
    alpha = {path.replace("nodeTopologyKeys", "keys") for path in fields("v1alpha1")}
    assert alpha == set(fields("v1beta1"))


def limits(version: str) -> dict[str, Any]:
    found = {path: node.get("enum", node.get("minimum")) for path, node in fields(version).items()}
    return {path: limit for path, limit in found.items() if limit is not None}


def test_only_the_newer_version_is_strict():
    assert limits("v1alpha1") == {}
    assert limits("v1beta1") == {
        ".spec.preferredPersistentTopology[].weight": 0,
        ".spec.persistentPodStateRetentionPolicy": ["WhenScaled", "WhenDeleted"],
    }
