"""The CRD of DaemonSet: names, columns, and what the versions differ in (daemonset.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.daemonset.kind import KIND
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
VERSIONS = {version["name"]: version for version in SPEC["versions"]}
COLUMNS = [
    ("DESIRED", "integer", ".status.desiredNumberScheduled", 0),
    ("CURRENT", "integer", ".status.currentNumberScheduled", 0),
    ("READY", "integer", ".status.numberReady", 0),
    ("UP-TO-DATE", "integer", ".status.updatedNumberScheduled", 0),
    ("AVAILABLE", "integer", ".status.numberAvailable", 0),
    ("AGE", "date", ".metadata.creationTimestamp", 0),
    ("CONTAINERS", "string", ".spec.template.spec.containers[*].name", 1),
    ("IMAGES", "string", ".spec.template.spec.containers[*].image", 1),
]
ROLLING = ".spec.updateStrategy.rollingUpdate"
ALWAYS = [
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberMisscheduled",
    "numberReady",
    "updatedNumberScheduled",
]


def fields(version: str) -> dict[str, Any]:
    return dict(walk(VERSIONS[version]["schema"]["openAPIV3Schema"]))


def test_names_scope_and_conversion():
    assert SPEC["names"] == {
        "kind": "DaemonSet",
        "listKind": "DaemonSetList",
        "plural": "daemonsets",
        "singular": "daemonset",
        "shortNames": ["daemon", "ads"],
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
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("version", VERSIONS)
def test_required_fields(version: str):
    known = fields(version)
    assert known[".spec"]["required"] == ["selector", "template"]
    assert known[".status"]["required"] == ALWAYS
    assert "required" not in known[ROLLING]


def test_what_the_versions_differ_in():
    alpha, beta = set(fields("v1alpha1")), set(fields("v1beta1"))
    assert beta - alpha == {
        ".spec.scaleStrategy",
        ".spec.scaleStrategy.partitionedScaling",
        ".status.updateRevision",
    }
    assert alpha - beta == {".status.daemonSetHash"}


def test_numbers_and_percentages():
    found = {path for path, node in fields("v1beta1").items() if node.get("x-kubernetes-int-or-string")}
    assert found == {
        ".spec.burstReplicas",
        *(f"{ROLLING}.{one}" for one in ("maxUnavailable", "maxSurge", "partition")),
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_admission_judges_values_and_fills_in_defaults(version: str):
    words = {"enum", "minimum", "maximum", "default"}
    assert not [path for path, node in fields(version).items() if words & node.keys()]


@pytest.mark.parametrize("version", VERSIONS)
def test_templates_keep_unknown_fields(version: str):
    node = fields(version)[".spec.template"]
    assert node["x-kubernetes-preserve-unknown-fields"] is True
    assert "properties" not in node
