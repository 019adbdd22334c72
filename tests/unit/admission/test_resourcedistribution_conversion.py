"""ResourceDistribution conversion (resourcedistribution.md §2): two names change, what is distributed never does."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.resourcedistribution.api import convert, to_hub
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from tests.testkit.documents import Json
from tests.unit.workload import openkruise

PAIRS = list(
    zip(
        openkruise.documents("resourcedistributions.v1alpha1"),
        openkruise.documents("resourcedistributions"),
        strict=True,
    )
)
NAMES = {V1ALPHA1: ("namespaceLabelSelector", "failedNamespace"), V1BETA1: ("namespaceSelector", "failedNamespaces")}
RESOURCE = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "djE="}}
RAW = (
    b'{"apiVersion":"v1","kind":"ConfigMap","data":{"b":"<&>","a":null},"numbers":[1,-9223372036854775808,0.25,1e-7],'
    b'"metadata":{"creationTimestamp":null,"name":"c"}}'
)


def document(version: str, selector: Json | None, failed: list[str] | None, **targets: Any) -> Json:
    by_labels, namespaces = NAMES[version]
    spec: Json = {"resource": RESOURCE, "targets": {by_labels: selector, **targets}}
    condition: Json = {"type": "ConflictOccurred", "status": "True", "reason": "r"}
    if failed is not None:
        condition[namespaces] = failed
    status = {"desired": 2, "conditions": [condition]}
    metadata = {"name": "d", "annotations": {"namespaceLabelSelector": "namespaceSelector"}}
    return {"apiVersion": version, "kind": "ResourceDistribution", "metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(("alpha", "beta"), PAIRS)
def test_objects_of_openkruise(alpha: Json, beta: Json) -> None:
    """Unused ways to choose namespaces are present in the converted view only."""
    assert convert(beta, V1ALPHA1) == alpha
    back = convert(alpha, V1BETA1)
    assert (back["spec"]["targets"].pop("namespaceSelector"), back["spec"]["targets"].pop("excludedNamespaces")) == (
        {},
        {},
    )
    assert back == beta


SELECTORS = st.fixed_dictionaries({}, optional={"matchLabels": st.dictionaries(st.text(), st.text(), min_size=1)})
LISTS = st.fixed_dictionaries({}, optional={"list": st.lists(st.fixed_dictionaries({"name": st.text()}), min_size=1)})


@given(SELECTORS, st.none() | st.lists(st.text(), min_size=1), LISTS, LISTS)
def test_both_ways_only_two_names_change(selector: Json, failed: list[str] | None, one: Json, other: Json) -> None:
    targets = {"includedNamespaces": one, "excludedNamespaces": other, "allNamespaces": False}
    alpha, beta = (document(version, selector, failed, **targets) for version in (V1ALPHA1, V1BETA1))
    assert convert(alpha, V1BETA1) == beta
    assert convert(beta, V1ALPHA1) == alpha


def test_what_is_distributed_passes_through_byte_for_byte() -> None:
    """Users compute its hash from either version."""
    beta = document(V1BETA1, {}, None)
    beta["spec"]["resource"] = msgspec.json.decode(RAW)
    alpha = convert(beta, V1ALPHA1)
    for one in (alpha, convert(alpha, V1BETA1)):
        assert msgspec.json.encode(one["spec"]["resource"]) == RAW


def test_empty_lists_become_absent_and_every_choice_is_shown() -> None:
    requirement: Json = {"key": "a", "operator": "Exists", "values": []}
    alpha = document(
        V1ALPHA1, {"matchLabels": {}, "matchExpressions": [requirement]}, [], includedNamespaces={"list": []}
    )
    beta = convert(alpha, V1BETA1)
    assert beta["spec"]["targets"] == {
        "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        "includedNamespaces": {},
        "excludedNamespaces": {},
    }
    assert beta["status"]["conditions"] == [{"type": "ConflictOccurred", "status": "True", "reason": "r"}]
    alpha["status"]["conditions"] = []
    assert "conditions" not in convert(alpha, V1BETA1)["status"]


def test_example_27_the_selector_of_an_older_manifest() -> None:
    selector = {"matchLabels": {"group": "one"}}
    assert to_hub(document(V1ALPHA1, selector, None))["spec"]["targets"]["namespaceSelector"] == selector
