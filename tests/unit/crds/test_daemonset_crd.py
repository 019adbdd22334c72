"""The CRD of DaemonSet: fields, and how the versions differ (daemonset.md §1, §2)."""

import pytest

from flotilla_common.api.kinds.daemonset.kind import KIND
from tests.unit.crds.schemas import BOTH, fields, int_or_string, restricted

ROLLING = ".spec.updateStrategy.rollingUpdate"
ALWAYS = [
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberMisscheduled",
    "numberReady",
    "updatedNumberScheduled",
]


@pytest.mark.parametrize("version", BOTH)
def test_required_fields(version: str):
    known = fields(KIND, version)
    assert known[".spec"]["required"] == ["selector", "template"]
    assert known[".status"]["required"] == ALWAYS
    assert "required" not in known[ROLLING]


def test_what_the_versions_differ_in():
    alpha, beta = set(fields(KIND, "v1alpha1")), set(fields(KIND, "v1beta1"))
    assert beta - alpha == {
        ".spec.scaleStrategy",
        ".spec.scaleStrategy.partitionedScaling",
        ".status.updateRevision",
    }
    assert alpha - beta == {".status.daemonSetHash"}


def test_numbers_and_percentages():
    found = int_or_string(fields(KIND, "v1beta1"))
    assert found == {
        ".spec.burstReplicas",
        *(f"{ROLLING}.{one}" for one in ("maxUnavailable", "maxSurge", "partition")),
    }


@pytest.mark.parametrize("version", BOTH)
def test_admission_judges_values_and_fills_in_defaults(version: str):
    assert restricted(fields(KIND, version)) == []


@pytest.mark.parametrize("version", BOTH)
def test_templates_keep_unknown_fields(version: str):
    node = fields(KIND, version)[".spec.template"]
    assert node["x-kubernetes-preserve-unknown-fields"] is True
    assert "properties" not in node
