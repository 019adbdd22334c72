"""The CRD of CloneSet: fields, and how the versions differ (cloneset.md §1, §2)."""

import pytest

from flotilla_common.api.kinds.cloneset.kind import KIND
from tests.unit.crds.schemas import BOTH, fields, int_or_string


@pytest.mark.parametrize("version", BOTH)
def test_required_fields(version: str):
    known = fields(KIND, version)
    assert known[".spec"]["required"] == ["selector", "template"]
    assert set(known[".status"]["required"]) == {
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "updatedReadyReplicas",
    }


@pytest.mark.parametrize(
    ("version", "prefix"),
    [
        pytest.param("v1alpha1", ".spec.updateStrategy", id="v1alpha1"),
        pytest.param("v1beta1", ".spec.updateStrategy.rollingUpdate", id="v1beta1"),
    ],
)
def test_int_or_string_fields(version: str, prefix: str):
    found = int_or_string(fields(KIND, version))
    assert found == {
        ".spec.scaleStrategy.maxUnavailable",
        f"{prefix}.maxUnavailable",
        f"{prefix}.maxSurge",
        f"{prefix}.partition",
        f"{prefix}.inPlaceUpdateStrategy.imagePreDownloadParallelism",
    }


def test_fields_that_differ_between_the_versions():
    alpha, beta = fields(KIND, "v1alpha1"), fields(KIND, "v1beta1")
    rollout = {
        path for path in alpha if path.startswith(".spec.updateStrategy.") and path != ".spec.updateStrategy.type"
    }
    assert set(alpha) - set(beta) == rollout | {".spec.scaleStrategy.disablePVCReuse"}
    moved = {path.replace(".updateStrategy.", ".updateStrategy.rollingUpdate.") for path in rollout}
    assert set(beta) - set(alpha) == moved | {
        ".spec.updateStrategy.rollingUpdate",
        ".spec.updateStrategy.rollingUpdate.podUpdatePolicy",
        ".spec.scaleStrategy.enablePVCReuse",
        ".spec.scaleStrategy.excludePreparingDelete",
    }


def test_the_only_schema_default_is_no_claim_reuse_in_v1beta1():
    defaults = {
        (version, path): node["default"]
        for version in BOTH
        for path, node in fields(KIND, version).items()
        if "default" in node
    }
    assert defaults == {("v1beta1", ".spec.scaleStrategy.enablePVCReuse"): False}


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("path", [".spec.template", ".spec.volumeClaimTemplates[]"])
def test_embedded_objects_keep_unknown_fields(version: str, path: str):
    node = fields(KIND, version)[path]
    assert node["x-kubernetes-preserve-unknown-fields"] is True
    assert "properties" not in node


@pytest.mark.parametrize("version", BOTH)
def test_no_enums_because_admission_checks_them(version: str):
    assert [path for path, node in fields(KIND, version).items() if "enum" in node] == []
