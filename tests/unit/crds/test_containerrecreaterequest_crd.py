"""The CRD of ContainerRecreateRequest: fields, and the differences between its versions.

See containerrecreaterequest.md §1, §2.
"""

import pytest

from flotilla_common.api.kinds.containerrecreaterequest.kind import KIND
from tests.unit.crds.schemas import BOTH, fields


@pytest.mark.parametrize("version", BOTH)
def test_required_fields(version: str):
    known = fields(KIND, version)
    assert known[".spec"]["required"] == ["containers", "podName"]
    assert known[".status"]["required"] == ["phase"]


def test_only_the_newer_version_has_snapshot_and_conditions():
    alpha, beta = fields(KIND, "v1alpha1"), fields(KIND, "v1beta1")
    assert set(alpha) <= set(beta)
    added = {path.split(".")[2].removesuffix("[]") for path in set(beta) - set(alpha)}
    assert added == {"conditions", "containerStatusSnapshot"}
    assert beta[".status.conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_only_the_newer_version_restricts_values():
    alpha, beta = fields(KIND, "v1alpha1"), fields(KIND, "v1beta1")
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
