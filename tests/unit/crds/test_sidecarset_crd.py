"""The CRD of SidecarSet: names, columns, and what the versions differ in (sidecarset.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.sidecarset.canonical import SIDECAR_MEMBERS
from flotilla_common.api.kinds.sidecarset.kind import KIND
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
VERSIONS = {version["name"]: version for version in SPEC["versions"]}
SIDECARS = [".spec.containers[]", ".spec.initContainers[]"]
COLUMNS = [
    ("MATCHED", "integer", ".status.matchedPods", 0),
    ("UPDATED", "integer", ".status.updatedPods", 0),
    ("READY", "integer", ".status.readyPods", 0),
    ("AGE", "date", ".metadata.creationTimestamp", 0),
]


def fields(version: str) -> dict[str, Any]:
    return dict(walk(VERSIONS[version]["schema"]["openAPIV3Schema"]))


def test_names_scope_and_conversion():
    assert SPEC["names"] == {
        "kind": "SidecarSet",
        "listKind": "SidecarSetList",
        "plural": "sidecarsets",
        "singular": "sidecarset",
    }
    assert (SPEC["group"], SPEC["scope"], SPEC["conversion"]["strategy"]) == ("apps.kruise.io", "Cluster", "Webhook")
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
    required = {path: node["required"] for path, node in fields(version).items() if "required" in node}
    selectors = {path for path in required if path.endswith("matchExpressions[]")}
    assert {path: names for path, names in required.items() if path not in selectors} == {
        ".status": ["matchedPods", "readyPods", "updatedPods"],
        **{f"{path}.resourcesPolicy": ["resourcesExpr", "targetContainersMode"] for path in SIDECARS},
        **{f"{path}.transferEnv[].sourceContainerNameFrom.fieldRef": ["fieldPath"] for path in SIDECARS},
    }


def test_fields_that_only_one_version_has():
    alpha, beta = set(fields("v1alpha1")), set(fields("v1beta1"))
    assert (alpha - beta, beta - alpha) == ({".spec.namespace"}, {".spec.customVersion"})


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_schema_itself_refuses_and_fills_in(version: str):
    words = ("enum", "default")
    found = {path: node[word] for path, node in fields(version).items() for word in words if word in node}
    policies = [f"{path}.resourcesPolicy" for path in SIDECARS]
    assert found == {
        ".spec.injectionStrategy.revision.policy": ["Always", "Partial"],
        **{f"{path}.targetContainersMode": ["sum", "max"] for path in policies},
        **{f"{path}.targetContainersNameRegex": ".*" for path in policies},
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_numbers_and_percentages(version: str):
    found = {path for path, node in fields(version).items() if node.get("x-kubernetes-int-or-string")}
    assert found == {".spec.updateStrategy.partition", ".spec.updateStrategy.maxUnavailable"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", [*SIDECARS, ".spec.volumes[]"])
def test_containers_and_volumes_keep_what_the_schema_does_not_know(version: str, path: str):
    node = fields(version)[path]
    assert node["x-kubernetes-preserve-unknown-fields"] is True
    assert set(node.get("properties", ())) == (set(SIDECAR_MEMBERS) if path in SIDECARS else set())
