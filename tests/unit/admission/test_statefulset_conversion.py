"""StatefulSet conversion (statefulset.md §2.3): common fields are the same in both versions."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.statefulset.types import convert
from flotilla_common.api.versions import V1ALPHA1, V1BETA1, hide
from tests.unit.workload import openkruise

ALPHAS, BETAS = openkruise.documents("statefulsets.v1alpha1"), openkruise.documents("statefulsets")
NAMES = [one["metadata"]["name"] for one in BETAS]


def document(version: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": "StatefulSet",
        "metadata": {"name": "web", "labels": {"a": "b"}},
        "spec": spec,
        "status": status,
    }


@pytest.mark.parametrize(("alpha", "beta"), list(zip(ALPHAS, BETAS, strict=True)), ids=NAMES)
def test_objects_of_openkruise(alpha: dict[str, Any], beta: dict[str, Any]) -> None:
    ours = convert(beta, V1ALPHA1)
    assert convert(ours, V1BETA1) == beta
    hide(ours)
    assert ours == alpha
    back = convert(alpha, V1BETA1)
    assert back["apiVersion"] == V1BETA1
    assert back["spec"].items() <= beta["spec"].items()
    assert back["status"].items() <= beta["status"].items()


def test_everything_that_v1alpha1_lacks_stands_in_an_annotation() -> None:
    spec = {
        "reserveOrdinals": [1, "3-5"],
        "ordinals": {"start": 1},
        "scaleStrategy": {"maxUnavailable": 1},
        "lifecycle": {"preDelete": {}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
        "volumeClaimUpdateStrategy": {"type": "OnDelete"},
    }
    status = {"updatedReadyReplicas": 1, "updatedAvailableReplicas": 1, "volumeClaims": [{}]}
    source = document(V1BETA1, spec | {"replicas": 2}, status | {"replicas": 1})
    before = copy.deepcopy(source)
    alpha = convert(source, V1ALPHA1)
    assert source == before
    assert hide(copy.deepcopy(alpha)) == {"spec": spec, "status": status}
    assert convert(alpha, V1BETA1) == source
    hide(alpha)
    assert alpha == document(V1ALPHA1, {"replicas": 2}, {"replicas": 1})


specs = st.fixed_dictionaries(
    {"selector": st.just({"matchLabels": {"a": "b"}}), "template": st.just({"spec": {"future": 1}})},
    optional={
        "replicas": st.integers(0, 9),
        "serviceName": st.just("headless"),
        "podManagementPolicy": st.sampled_from(["OrderedReady", "Parallel"]),
        "revisionHistoryLimit": st.integers(0, 9),
        "volumeClaimTemplates": st.just([{"metadata": {"name": "data"}}]),
        "updateStrategy": st.fixed_dictionaries(
            {"type": st.just("RollingUpdate")},
            optional={
                "rollingUpdate": st.fixed_dictionaries(
                    {"partition": st.integers(0, 5), "maxUnavailable": st.sampled_from([1, "30%"])},
                    optional={"unorderedUpdate": st.just({}), "paused": st.booleans()},
                )
            },
        ),
    },
)
statuses = st.fixed_dictionaries({}, optional={"replicas": st.integers(0, 9), "currentRevision": st.just("web-1")})


@given(specs, statuses)
def test_what_v1alpha1_can_say_survives_a_round_trip(spec: dict[str, Any], status: dict[str, Any]) -> None:
    alpha = document(V1ALPHA1, spec, status)
    assert convert(convert(alpha, V1BETA1), V1ALPHA1) == alpha
    beta = document(V1BETA1, spec, status)
    assert convert(convert(beta, V1ALPHA1), V1BETA1) == beta
