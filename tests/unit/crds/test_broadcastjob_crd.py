"""The CRD of BroadcastJob: names, columns, fields (broadcastjob.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.broadcastjob.kind import KIND
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
VERSIONS = {version["name"]: version for version in SPEC["versions"]}
COLUMNS = [
    ("Desired", "integer", ".status.desired"),
    ("Active", "integer", ".status.active"),
    ("Succeeded", "integer", ".status.succeeded"),
    ("Failed", "integer", ".status.failed"),
    ("AGE", "date", ".metadata.creationTimestamp"),
]


def test_names_scope_and_conversion():
    assert SPEC["names"] == {
        "kind": "BroadcastJob",
        "listKind": "BroadcastJobList",
        "plural": "broadcastjobs",
        "singular": "broadcastjob",
        "shortNames": ["bcj"],
    }
    assert (SPEC["group"], SPEC["scope"], SPEC["conversion"]) == ("apps.kruise.io", "Namespaced", {"strategy": "None"})
    assert {name: (one["served"], one["storage"]) for name, one in VERSIONS.items()} == {
        "v1alpha1": (True, False),
        "v1beta1": (True, True),
    }


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_columns_and_subresources(version: Any):
    columns = version["additionalPrinterColumns"]
    assert [(one["name"], one["type"], one["jsonPath"]) for one in columns] == COLUMNS
    assert version["subresources"] == {"status": {}}


def test_fields():
    alpha, beta = (VERSIONS[name]["schema"]["openAPIV3Schema"] for name in ("v1alpha1", "v1beta1"))
    assert alpha == beta
    known = dict(walk(beta))
    assert known[".spec"]["required"] == ["template"]
    assert known[".status"]["required"] == ["active", "desired", "failed", "phase", "succeeded"]
    assert known[".spec.parallelism"]["x-kubernetes-int-or-string"] is True
    assert known[".spec.template"]["x-kubernetes-preserve-unknown-fields"] is True
    assert ".spec.completionPolicy.backoffLimit" not in known
    assert [path for path, node in known.items() if {"enum", "minimum", "maximum", "default"} & node.keys()] == []
