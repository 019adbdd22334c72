"""SidecarSet conversion (sidecarset.md §2.4): a namespace becomes a selector for good, a custom version is a label."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.sidecarset.admission import convert, to_hub
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from tests.unit.workload import openkruise

VERSION = "apps.kruise.io/sidecarset-custom-version"
PINNED = {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
ELSEWHERE = {"matchLabels": {"team": "a"}}


def document(version: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "side"} | ({} if labels is None else {"labels": labels})
    return {"apiVersion": version, "kind": "SidecarSet", "metadata": metadata, "spec": spec}


def test_objects_of_openkruise() -> None:
    (alpha,), (beta,) = openkruise.documents("sidecarsets.v1alpha1"), openkruise.documents("sidecarsets")
    assert convert(beta, V1ALPHA1) == alpha
    assert convert(alpha, V1BETA1) == beta


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        pytest.param(
            document(V1ALPHA1, {"namespace": "shop"}),
            document(V1BETA1, {"namespaceSelector": PINNED}),
            id="a namespace",
        ),
        pytest.param(
            document(V1ALPHA1, {"namespace": "shop", "namespaceSelector": ELSEWHERE}),
            document(V1BETA1, {"namespaceSelector": PINNED}),
            id="the namespace wins",
        ),
        pytest.param(
            document(V1ALPHA1, {"namespace": "", "namespaceSelector": ELSEWHERE}),
            document(V1BETA1, {"namespaceSelector": ELSEWHERE}),
            id="an empty namespace is none",
        ),
        pytest.param(
            document(V1ALPHA1, {}, {VERSION: "3", "a": "b"}),
            document(V1BETA1, {"customVersion": "3"}, {"a": "b"}),
            id="a custom version",
        ),
        pytest.param(
            document(V1ALPHA1, {}, {VERSION: "3"}), document(V1BETA1, {"customVersion": "3"}), id="the only label"
        ),
        pytest.param(document(V1ALPHA1, {}, {VERSION: ""}), document(V1BETA1, {}), id="an empty one is none"),
        pytest.param(document(V1ALPHA1, {"containers": None}), document(V1BETA1, {"containers": None}), id="no list"),
    ],
)
def test_to_beta(alpha: dict[str, Any], beta: dict[str, Any]) -> None:
    before = copy.deepcopy(alpha)
    assert convert(alpha, V1BETA1) == to_hub(alpha) == beta
    assert alpha == before
    assert to_hub(beta) is beta


@pytest.mark.parametrize(
    ("beta", "alpha"),
    [
        pytest.param(
            document(V1BETA1, {"namespaceSelector": PINNED}),
            document(V1ALPHA1, {"namespaceSelector": PINNED}),
            id="a selector stays a selector",
        ),
        pytest.param(
            document(V1BETA1, {"customVersion": "3"}, {"a": "b"}),
            document(V1ALPHA1, {}, {VERSION: "3", "a": "b"}),
            id="a custom version",
        ),
        pytest.param(
            document(V1BETA1, {"customVersion": "3"}), document(V1ALPHA1, {}, {VERSION: "3"}), id="without labels"
        ),
        pytest.param(document(V1BETA1, {"customVersion": ""}), document(V1ALPHA1, {}), id="an empty one is none"),
    ],
)
def test_to_alpha(beta: dict[str, Any], alpha: dict[str, Any]) -> None:
    before = copy.deepcopy(beta)
    assert convert(beta, V1ALPHA1) == alpha
    assert beta == before


specs = st.fixed_dictionaries(
    {"selector": st.just({"matchLabels": {"a": "b"}})},
    optional={
        "namespaceSelector": st.sampled_from([PINNED, ELSEWHERE]),
        "containers": st.just([{"name": "log", "image": "i", "future": 1}]),
        "customVersion": st.sampled_from(["1", "v2"]),
        "updateStrategy": st.just({"partition": "10%"}),
    },
)


@given(specs, st.none() | st.just({"a": "b"}))
def test_nothing_is_lost_on_the_way_through_v1alpha1(spec: dict[str, Any], labels: dict[str, str] | None) -> None:
    beta = document(V1BETA1, spec, labels)
    assert convert(convert(beta, V1ALPHA1), V1BETA1) == beta


def test_a_custom_version_that_is_no_label_is_kept_and_not_shown() -> None:
    stored = document(V1BETA1, {"customVersion": "x/y"}, {"a": "b"})
    view = convert(stored, V1ALPHA1)
    assert view["metadata"]["labels"] == {"a": "b"}
    assert convert(view, V1BETA1) == stored
