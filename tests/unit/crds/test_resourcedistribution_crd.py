"""The CRD of ResourceDistribution: fields, and how the versions differ (resourcedistribution.md §1, §2)."""

import pytest

from flotilla_common.api.kinds.resourcedistribution.kind import KIND
from tests.unit.crds.schemas import BOTH, fields

RENAMED = {"namespaceLabelSelector": "namespaceSelector", "failedNamespace": "failedNamespaces"}


@pytest.mark.parametrize("version", BOTH)
def test_the_apiserver_looks_at_the_resource_as_at_an_object_of_its_own(version: str):
    found = fields(KIND, version)
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

    assert {renamed(path) for path in fields(KIND, "v1alpha1")} == {renamed(path) for path in fields(KIND, "v1beta1")}
    assert not fields(KIND, "v1beta1").keys() & {f".spec.targets.{name}" for name in RENAMED}
