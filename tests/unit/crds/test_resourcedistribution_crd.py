"""The CRD of ResourceDistribution: names, columns, and what the versions differ in (resourcedistribution.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.resourcedistribution.kind import KIND
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
VERSIONS = {version["name"]: version for version in SPEC["versions"]}
RENAMED = {"namespaceLabelSelector": "namespaceSelector", "failedNamespace": "failedNamespaces"}


def fields(version: str) -> dict[str, Any]:
    return dict(walk(VERSIONS[version]["schema"]["openAPIV3Schema"]))


def test_names_scope_and_conversion():
    assert SPEC["names"] == {
        "kind": "ResourceDistribution",
        "listKind": "ResourceDistributionList",
        "plural": "resourcedistributions",
        "singular": "resourcedistribution",
        "shortNames": ["distributor"],
    }
    assert (SPEC["group"], SPEC["scope"], SPEC["conversion"]["strategy"]) == ("apps.kruise.io", "Cluster", "Webhook")
    assert {name: (one["served"], one["storage"]) for name, one in VERSIONS.items()} == {
        "v1alpha1": (True, False),
        "v1beta1": (True, True),
    }


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_columns_and_subresources(version: Any):
    assert version["additionalPrinterColumns"] == [
        {"name": "TOTAL", "type": "integer", "jsonPath": ".status.desired"},
        {"name": "SUCCEED", "type": "integer", "jsonPath": ".status.succeeded"},
        {"name": "FAILED", "type": "integer", "jsonPath": ".status.failed"},
    ]
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_apiserver_looks_at_the_resource_as_at_an_object_of_its_own(version: str):
    found = fields(version)
    assert found[".spec"]["required"] == ["resource", "targets"]
    resource = found[".spec.resource"]
    assert (resource["x-kubernetes-embedded-resource"], resource["x-kubernetes-preserve-unknown-fields"]) == (
        True,
        True,
    )
    selector = found[".spec.targets." + ("namespaceLabelSelector" if version == "v1alpha1" else "namespaceSelector")]
    assert {"matchLabels", "matchExpressions"} == selector["properties"].keys()


def test_two_members_have_other_names():
    def renamed(path: str) -> str:
        return ".".join(RENAMED.get(part.removesuffix("[]"), part.removesuffix("[]")) for part in path.split("."))

    assert {renamed(path) for path in fields("v1alpha1")} == {renamed(path) for path in fields("v1beta1")}
    assert not fields("v1beta1").keys() & {f".spec.targets.{name}" for name in RENAMED}
