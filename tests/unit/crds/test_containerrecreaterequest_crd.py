"""The CRD of ContainerRecreateRequest: names, columns, and what the versions differ in (containerrecreaterequest.md §1,
§2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.containerrecreaterequest.kind import KIND
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
VERSIONS = {version["name"]: version for version in SPEC["versions"]}
COLUMNS = [
    ("PHASE", "string", ".status.phase"),
    ("POD", "string", ".spec.podName"),
    ("NODE", "string", r".metadata.labels.crr\.apps\.kruise\.io/node-name"),
    ("AGE", "date", ".metadata.creationTimestamp"),
]


def fields(version: str) -> dict[str, Any]:
    return dict(walk(VERSIONS[version]["schema"]["openAPIV3Schema"]))


def test_names_scope_and_conversion():
    assert SPEC["names"] == {
        "kind": "ContainerRecreateRequest",
        "listKind": "ContainerRecreateRequestList",
        "plural": "containerrecreaterequests",
        "singular": "containerrecreaterequest",
        "shortNames": ["crr"],
    }
    assert (SPEC["group"], SPEC["scope"], SPEC["conversion"]["strategy"]) == ("apps.kruise.io", "Namespaced", "Webhook")
    assert {name: (one["served"], one["storage"]) for name, one in VERSIONS.items()} == {
        "v1alpha1": (True, False),
        "v1beta1": (True, True),
    }


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_columns_and_subresources(version: Any):
    assert [(one["name"], one["type"], one["jsonPath"]) for one in version["additionalPrinterColumns"]] == COLUMNS
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("version", VERSIONS)
def test_required_fields(version: str):
    known = fields(version)
    assert known[".spec"]["required"] == ["containers", "podName"]
    assert known[".status"]["required"] == ["phase"]


def test_only_the_newer_version_has_snapshot_and_conditions():
    alpha, beta = fields("v1alpha1"), fields("v1beta1")
    assert set(alpha) <= set(beta)
    added = {path.split(".")[2].removesuffix("[]") for path in set(beta) - set(alpha)}
    assert added == {"conditions", "containerStatusSnapshot"}
    assert beta[".status.conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_only_the_newer_version_restricts_values():
    alpha, beta = fields("v1alpha1"), fields("v1beta1")
    assert [path for path, node in alpha.items() if {"enum", "minimum"} & node.keys()] == []
    assert {path for path, node in beta.items() if path.startswith(".spec") and node.get("minimum") == 0} == {
        ".spec.activeDeadlineSeconds",
        ".spec.ttlSecondsAfterFinished",
        ".spec.strategy.minStartedSeconds",
        ".spec.strategy.terminationGracePeriodSeconds",
        ".spec.strategy.unreadyGracePeriodSeconds",
    }
    assert beta[".spec.strategy.failurePolicy"]["enum"] == ["Fail", "Ignore"]
    assert set(beta[".status.phase"]["enum"]) == {"", "Pending", "Recreating", "Succeeded", "Failed", "Completed"}
