"""The StatefulSets and PersistentPodStates of the users' articles are accepted and get the promised defaults.

Where articles show a part, it is inserted into a whole manifest here.
"""

from typing import Any

import msgspec
import pytest
import yaml

from flotilla_common.api.kinds.persistentpodstate.api import spec_faults, to_hub
from flotilla_common.api.kinds.persistentpodstate.types import PersistentPodState
from flotilla_common.api.kinds.statefulset.api import default_statefulset
from flotilla_common.api.kinds.statefulset.types import convert
from flotilla_common.api.kinds.statefulset.validation import check_types, validate
from flotilla_common.api.versions import V1ALPHA1
from flotilla_common.gates import Gates
from tests.testkit.manifests import article

IN_PLACE, PARALLEL = article("statefulset/in-place"), article("statefulset/parallel")
PAUSED = """
updateStrategy:
  rollingUpdate:
    paused: true
"""
RESERVED = """
replicas: 4
reserveOrdinals:
- 1
"""
MOVED = """
replicas: 3
reserveOrdinals: [1,3]
"""
STREAMING = """
podManagementPolicy: Parallel
replicas: 100
scaleStrategy:
  maxUnavailable: 10% # percentage or absolute number
"""
BY_WEIGHT = """
podManagementPolicy: Parallel
updateStrategy:
  rollingUpdate:
    unorderedUpdate:
      priorityStrategy:
        weightPriority:
        - weight: 50
          matchSelector:
            matchLabels:
              test-key: foo
        - weight: 30
          matchSelector:
            matchLabels:
              test-key: bar
"""
BY_ORDER = """
podManagementPolicy: Parallel
updateStrategy:
  rollingUpdate:
    unorderedUpdate:
      priorityStrategy:
        orderPriority:
          - orderedKey: some-label-key
"""
STATE = article("persistentpodstate/state")

GATES = Gates.parse("")


def accepted(document: dict[str, Any]) -> dict[str, Any]:
    """Return the stored spec."""
    check_types(document)
    stored = default_statefulset(document, None, GATES)
    assert validate(stored) == []
    return stored["spec"]


def whole(part: str) -> dict[str, Any]:
    labels = {"app": "nginx"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template} | yaml.safe_load(part)
    return {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("manifest", "rolling"),
    [
        pytest.param(PARALLEL, {"podUpdatePolicy": "ReCreate", "maxUnavailable": 3}, id="three at once"),
        pytest.param(IN_PLACE, {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 3}, id="in place"),
    ],
)
def test_manifests(manifest: str, rolling: dict[str, Any]) -> None:
    spec = accepted(yaml.safe_load(manifest))
    numbers = {"partition": 0, "minReadySeconds": 0}
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling | numbers}
    assert (spec["replicas"], spec["serviceName"], spec["revisionHistoryLimit"]) == (5, "nginx-headless", 10)


@pytest.mark.parametrize(
    "part",
    [PAUSED, RESERVED, MOVED, STREAMING, BY_WEIGHT, BY_ORDER],
    ids=["paused", "reserved", "moved", "streaming", "by weight", "by order"],
)
def test_parts(part: str) -> None:
    given, spec = yaml.safe_load(part), accepted(whole(part))
    for key in given.keys() - {"updateStrategy"}:
        assert spec[key] == given[key]
    rolling = given.get("updateStrategy", {}).get("rollingUpdate", {})
    assert spec["updateStrategy"]["rollingUpdate"].items() >= rolling.items()


def test_streaming_needs_pods_that_start_at_once() -> None:
    in_order = default_statefulset(whole(STREAMING.replace("Parallel", "OrderedReady")), None, GATES)
    (fault,) = validate(in_order)
    assert "can only work with Parallel PodManagementPolicyType" in str(fault)


def test_a_built_in_set_needs_another_version_and_nothing_else() -> None:
    """Ours is stored as the apiserver would store the built-in kind."""
    spec = accepted(whole("serviceName: nginx-headless"))
    assert (spec["replicas"], spec["podManagementPolicy"], spec["revisionHistoryLimit"]) == (1, "OrderedReady", 10)
    assert spec["updateStrategy"]["rollingUpdate"]["partition"] == 0
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_a_set_with_annotations_in_the_old_version() -> None:
    document = convert(whole("replicas: 3"), V1ALPHA1)
    document["metadata"]["annotations"] = {
        "kruise.io/auto-generate-persistent-pod-state": "true",
        "kruise.io/preferred-persistent-topology": "kubernetes.io/hostname",
        "kruise.io/required-persistent-topology": "failure-domain.beta.kubernetes.io/zone",
    }
    assert accepted(document)["replicas"] == 3


def test_a_state() -> None:
    document = to_hub(yaml.safe_load(STATE))
    state = msgspec.convert(document, PersistentPodState)
    assert list(spec_faults(document, state, [])) == []
    assert state.spec.required_persistent_topology is not None
    assert state.spec.required_persistent_topology.keys == ["failure-domain.beta.kubernetes.io/zone"]
    (preferred,) = state.spec.preferred_persistent_topology
    assert (preferred.weight, preferred.preference.keys) == (100, ["kubernetes.io/hostname"])
