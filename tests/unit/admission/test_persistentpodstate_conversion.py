"""PersistentPodState conversion (persistentpodstate.md §2): lists of keys are renamed, nothing is lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.persistentpodstate.api import convert, to_hub
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from tests.unit.workload import openkruise

PAIRS = list(
    zip(openkruise.documents("persistentpodstates.v1alpha1"), openkruise.documents("persistentpodstates"), strict=True)
)
TARGET = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web"}


def document(version: str, keys: str, required: list[str] | None, *preferred: list[str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"targetRef": TARGET, "persistentPodStateRetentionPolicy": "WhenDeleted"}
    if required is not None:
        spec["requiredPersistentTopology"] = {keys: required}
    if preferred:
        terms = [{"weight": 100 - index, "preference": {keys: one}} for index, one in enumerate(preferred)]
        spec["preferredPersistentTopology"] = terms
    status = {"observedGeneration": 1, "podStates": {"web-0": {"nodeName": "n", "nodeTopologyLabels": {"keys": "x"}}}}
    return {
        "apiVersion": version,
        "kind": "PersistentPodState",
        "metadata": {"name": "p"},
        "spec": spec,
        "status": status,
    }


@pytest.mark.parametrize(("alpha", "beta"), PAIRS)
def test_objects_of_openkruise(alpha: dict[str, Any], beta: dict[str, Any]) -> None:
    assert convert(beta, V1ALPHA1) == alpha
    assert convert(alpha, V1BETA1) == beta


@given(st.none() | st.lists(st.text()), st.lists(st.lists(st.text()), max_size=3))
def test_both_ways_only_the_name_of_the_lists_changes(required: list[str] | None, preferred: list[list[str]]) -> None:
    alpha = document(V1ALPHA1, "nodeTopologyKeys", required, *preferred)
    beta = document(V1BETA1, "keys", required, *preferred)
    assert convert(alpha, V1BETA1) == beta
    assert convert(beta, V1ALPHA1) == alpha


def test_the_hub() -> None:
    beta = document(V1BETA1, "keys", ["a"])
    assert to_hub(beta) is beta
    assert to_hub(document(V1ALPHA1, "nodeTopologyKeys", ["a"])) == beta
