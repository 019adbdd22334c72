"""The CRD of StatefulSet: names, columns, and what the versions differ in (statefulset.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.statefulset.kind import KIND
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
VERSIONS = {version["name"]: version for version in SPEC["versions"]}
COLUMNS = [
    ("DESIRED", "integer", ".spec.replicas", 0),
    ("CURRENT", "integer", ".status.replicas", 0),
    ("UPDATED", "integer", ".status.updatedReplicas", 0),
    ("READY", "integer", ".status.readyReplicas", 0),
    ("AGE", "date", ".metadata.creationTimestamp", 0),
    ("CONTAINERS", "string", ".spec.template.spec.containers[*].name", 1),
    ("IMAGES", "string", ".spec.template.spec.containers[*].image", 1),
]
ROLLING = ".spec.updateStrategy.rollingUpdate"


def fields(version: str) -> dict[str, Any]:
    return dict(walk(VERSIONS[version]["schema"]["openAPIV3Schema"]))


def test_names_scope_and_conversion():
    assert SPEC["names"] == {
        "kind": "StatefulSet",
        "listKind": "StatefulSetList",
        "plural": "statefulsets",
        "singular": "statefulset",
        "shortNames": ["sts", "asts"],
    }
    assert (SPEC["group"], SPEC["scope"], SPEC["conversion"]["strategy"]) == ("apps.kruise.io", "Namespaced", "Webhook")
    assert {name: (one["served"], one["storage"]) for name, one in VERSIONS.items()} == {
        "v1alpha1": (True, False),
        "v1beta1": (True, True),
    }


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_columns_and_subresources(version: Any):
    columns = version["additionalPrinterColumns"]
    assert [(one["name"], one["type"], one["jsonPath"], one.get("priority", 0)) for one in columns] == COLUMNS
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.labelSelector",
        },
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_required_fields(version: str):
    known = fields(version)
    assert known[".spec"]["required"] == ["selector", "template"]
    counts = ["availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas"]
    assert known[".status"]["required"] == counts


def test_fields_that_only_the_newer_version_has():
    alpha, beta = fields("v1alpha1"), fields("v1beta1")
    assert set(alpha) <= set(beta)
    added = {".".join(path.split(".")[:3]).removesuffix("[]") for path in set(beta) - set(alpha)}
    assert added == {
        ".spec.reserveOrdinals",
        ".spec.ordinals",
        ".spec.scaleStrategy",
        ".spec.lifecycle",
        ".spec.persistentVolumeClaimRetentionPolicy",
        ".spec.volumeClaimUpdateStrategy",
        ".status.updatedReadyReplicas",
        ".status.updatedAvailableReplicas",
        ".status.volumeClaims",
    }


def test_numbers_and_percentages():
    found = {path for path, node in fields("v1beta1").items() if node.get("x-kubernetes-int-or-string")}
    assert found == {
        ".spec.reserveOrdinals[]",
        ".spec.scaleStrategy.maxUnavailable",
        f"{ROLLING}.maxUnavailable",
        f"{ROLLING}.inPlaceUpdateStrategy.imagePreDownloadParallelism",
    }
    assert fields("v1beta1")[f"{ROLLING}.partition"]["type"] == "integer"


@pytest.mark.parametrize("version", VERSIONS)
def test_admission_judges_values_and_fills_in_defaults(version: str):
    words = {"enum", "minimum", "maximum", "default"}
    assert not [path for path, node in fields(version).items() if words & node.keys()]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", [".spec.template", ".spec.volumeClaimTemplates[]"])
def test_embedded_objects_keep_unknown_fields(version: str, path: str):
    node = fields(version)[path]
    assert node["x-kubernetes-preserve-unknown-fields"] is True
    assert "properties" not in node


def test_the_built_in_field_for_ready_seconds_is_elsewhere():
    assert ".spec.minReadySeconds" not in fields("v1beta1")
    assert f"{ROLLING}.minReadySeconds" in fields("v1alpha1")
