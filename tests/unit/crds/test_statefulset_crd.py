"""The CRD of StatefulSet: fields, and how the versions differ (statefulset.md §1, §2)."""

import pytest

from flotilla_common.api.kinds.statefulset.kind import KIND
from tests.unit.crds.schemas import BOTH, fields, int_or_string, restricted

ROLLING = ".spec.updateStrategy.rollingUpdate"


@pytest.mark.parametrize("version", BOTH)
def test_required_fields(version: str):
    known = fields(KIND, version)
    assert known[".spec"]["required"] == ["selector", "template"]
    counts = ["availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas"]
    assert known[".status"]["required"] == counts


def test_fields_that_only_the_newer_version_has():
    alpha, beta = fields(KIND, "v1alpha1"), fields(KIND, "v1beta1")
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
    found = int_or_string(fields(KIND, "v1beta1"))
    assert found == {
        ".spec.reserveOrdinals[]",
        ".spec.scaleStrategy.maxUnavailable",
        f"{ROLLING}.maxUnavailable",
        f"{ROLLING}.inPlaceUpdateStrategy.imagePreDownloadParallelism",
    }
    assert fields(KIND, "v1beta1")[f"{ROLLING}.partition"]["type"] == "integer"


@pytest.mark.parametrize("version", BOTH)
def test_admission_judges_values_and_fills_in_defaults(version: str):
    assert restricted(fields(KIND, version)) == []


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("path", [".spec.template", ".spec.volumeClaimTemplates[]"])
def test_embedded_objects_keep_unknown_fields(version: str, path: str):
    node = fields(KIND, version)[path]
    assert node["x-kubernetes-preserve-unknown-fields"] is True
    assert "properties" not in node


def test_the_built_in_field_for_ready_seconds_is_elsewhere():
    assert ".spec.minReadySeconds" not in fields(KIND, "v1beta1")
    assert f"{ROLLING}.minReadySeconds" in fields(KIND, "v1alpha1")
