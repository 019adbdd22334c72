"""The CRD of SidecarSet: fields, and how the versions differ (sidecarset.md §1, §2)."""

import pytest

from flotilla_common.api.kinds.sidecarset.canonical import SIDECAR_MEMBERS
from flotilla_common.api.kinds.sidecarset.kind import KIND
from tests.unit.crds.schemas import BOTH, fields, int_or_string

SIDECARS = [".spec.containers[]", ".spec.initContainers[]"]


@pytest.mark.parametrize("version", BOTH)
def test_required_fields(version: str):
    required = {path: node["required"] for path, node in fields(KIND, version).items() if "required" in node}
    selectors = {path for path in required if path.endswith("matchExpressions[]")}
    assert {path: names for path, names in required.items() if path not in selectors} == {
        ".status": ["matchedPods", "readyPods", "updatedPods"],
        **{f"{path}.resourcesPolicy": ["resourcesExpr", "targetContainersMode"] for path in SIDECARS},
        **{f"{path}.transferEnv[].sourceContainerNameFrom.fieldRef": ["fieldPath"] for path in SIDECARS},
    }


def test_fields_that_only_one_version_has():
    alpha, beta = set(fields(KIND, "v1alpha1")), set(fields(KIND, "v1beta1"))
    assert (alpha - beta, beta - alpha) == ({".spec.namespace"}, {".spec.customVersion"})


@pytest.mark.parametrize("version", BOTH)
def test_what_the_schema_itself_refuses_and_fills_in(version: str):
    words = ("enum", "default")
    found = {path: node[word] for path, node in fields(KIND, version).items() for word in words if word in node}
    policies = [f"{path}.resourcesPolicy" for path in SIDECARS]
    assert found == {
        ".spec.injectionStrategy.revision.policy": ["Always", "Partial"],
        **{f"{path}.targetContainersMode": ["sum", "max"] for path in policies},
        **{f"{path}.targetContainersNameRegex": ".*" for path in policies},
    }


@pytest.mark.parametrize("version", BOTH)
def test_numbers_and_percentages(version: str):
    found = int_or_string(fields(KIND, version))
    assert found == {".spec.updateStrategy.partition", ".spec.updateStrategy.maxUnavailable"}


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("path", [*SIDECARS, ".spec.volumes[]"])
def test_containers_and_volumes_keep_what_the_schema_does_not_know(version: str, path: str):
    node = fields(KIND, version)[path]
    assert node["x-kubernetes-preserve-unknown-fields"] is True
    assert set(node.get("properties", ())) == (set(SIDECAR_MEMBERS) if path in SIDECARS else set())
