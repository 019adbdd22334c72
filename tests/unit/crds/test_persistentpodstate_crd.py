"""The CRD of PersistentPodState: fields, and how the versions differ (persistentpodstate.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.persistentpodstate.kind import KIND
from tests.unit.crds.schemas import BOTH, fields

KEYS = {"v1alpha1": "nodeTopologyKeys", "v1beta1": "keys"}


@pytest.mark.parametrize("version", BOTH)
def test_required_fields(version: str):
    required = {path: node["required"] for path, node in fields(KIND, version).items() if "required" in node}
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
    alpha = {path.replace("nodeTopologyKeys", "keys") for path in fields(KIND, "v1alpha1")}
    assert alpha == set(fields(KIND, "v1beta1"))


def limits(version: str) -> dict[str, Any]:
    found = {path: node.get("enum", node.get("minimum")) for path, node in fields(KIND, version).items()}
    return {path: limit for path, limit in found.items() if limit is not None}


def test_only_the_newer_version_is_strict():
    assert limits("v1alpha1") == {}
    assert limits("v1beta1") == {
        ".spec.preferredPersistentTopology[].weight": 0,
        ".spec.persistentPodStateRetentionPolicy": ["WhenScaled", "WhenDeleted"],
    }
