"""DaemonSet conversion (daemonset.md §2.4): one field is an annotation in v1alpha1, one has another name."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.daemonset.types import convert
from flotilla_common.api.podtemplate import canonical_template
from flotilla_common.api.versions import V1ALPHA1, V1BETA1, hide
from tests.unit.workload import openkruise

(ALPHA,), (BETA,) = openkruise.documents("daemonsets.v1alpha1"), openkruise.documents("daemonsets")
PROGRESSIVE = "daemonset.kruise.io/progressive-create-pod"


def document(version: str, spec: dict[str, Any], annotations: dict[str, str] | None = None, **status: Any) -> Any:
    metadata = {"name": "probe"} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": version, "kind": "DaemonSet", "metadata": metadata, "spec": spec, "status": status}


def typed(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the object with its template as OpenKruise's conversion writes it; ours leaves it as stored."""
    template = canonical_template(openkruise.encoded(stored["spec"]["template"]))
    return stored | {"spec": stored["spec"] | {"template": template}}


def test_objects_of_openkruise() -> None:
    assert typed(convert(BETA, V1ALPHA1)) == ALPHA
    assert typed(convert(ALPHA, V1BETA1)) == typed(BETA)


ROWS = [
    pytest.param({}, {}, {}, id="nothing to convert"),
    pytest.param({PROGRESSIVE: "true"}, {}, {"scaleStrategy": {"partitionedScaling": True}}, id="progressive"),
    pytest.param({PROGRESSIVE: "false"}, {}, {}, id="another value"),
    pytest.param({PROGRESSIVE: "True"}, {}, {}, id="a capital letter"),
    pytest.param(
        {},
        {"updateStrategy": {"rollingUpdate": {"rollingUpdateType": "Surging", "maxSurge": 1}}},
        {"updateStrategy": {"rollingUpdate": {"rollingUpdateType": "Standard", "maxSurge": 1}}},
        id="the old word for surging",
    ),
    pytest.param(
        {},
        {"updateStrategy": {"type": "OnDelete"}, "lifecycle": {"preDelete": {}}, "burstReplicas": "10%"},
        {"updateStrategy": {"type": "OnDelete"}, "lifecycle": {"preDelete": {}}, "burstReplicas": "10%"},
        id="what both have",
    ),
]


@pytest.mark.parametrize(("annotations", "alpha", "beta"), ROWS)
def test_to_v1beta1(annotations: dict[str, str], alpha: dict[str, Any], beta: dict[str, Any]) -> None:
    source = document(V1ALPHA1, alpha, annotations, daemonSetHash="1a")
    before = copy.deepcopy(source)
    assert convert(source, V1BETA1) == document(V1BETA1, beta, annotations, updateRevision="1a")
    assert source == before


@pytest.mark.parametrize(
    ("scale", "annotations"),
    [
        pytest.param({"partitionedScaling": True}, {PROGRESSIVE: "true", "a": "b"}, id="on"),
        pytest.param({"partitionedScaling": False}, {"a": "b"}, id="off"),
        pytest.param({}, {"a": "b"}, id="absent"),
    ],
)
def test_to_v1alpha1(scale: dict[str, Any], annotations: dict[str, str]) -> None:
    source = document(V1BETA1, {"scaleStrategy": scale, "minReadySeconds": 1}, {"a": "b"}, updateRevision="1a")
    alpha = convert(source, V1ALPHA1)
    back = convert(alpha, V1BETA1)
    assert back["spec"] == source["spec"]
    hide(alpha)
    assert alpha == document(V1ALPHA1, {"minReadySeconds": 1}, annotations, daemonSetHash="1a")


def test_an_annotation_outlives_the_field() -> None:
    """The pitfall of §2.4: where the field is gone, the next write through v1alpha1 turns it on again."""
    gone = document(V1BETA1, {}, {PROGRESSIVE: "true"})
    back = convert(convert(gone, V1ALPHA1), V1BETA1)
    assert back["spec"]["scaleStrategy"] == {"partitionedScaling": True}


def test_an_annotation_does_not_outlive_what_v1beta1_turned_off() -> None:
    off = document(V1BETA1, {"scaleStrategy": {"partitionedScaling": False}}, {PROGRESSIVE: "true"})
    alpha = convert(off, V1ALPHA1)
    assert alpha["metadata"]["annotations"][PROGRESSIVE] == "false"
    assert convert(alpha, V1BETA1)["spec"]["scaleStrategy"] == {"partitionedScaling": False}
    alpha["metadata"]["annotations"][PROGRESSIVE] = "true"
    assert convert(alpha, V1BETA1)["spec"]["scaleStrategy"] == {"partitionedScaling": True}


specs = st.fixed_dictionaries(
    {"selector": st.just({"matchLabels": {"a": "b"}}), "template": st.just({"spec": {"future": 1}})},
    optional={
        "burstReplicas": st.sampled_from([250, "10%"]),
        "minReadySeconds": st.integers(0, 9),
        "revisionHistoryLimit": st.integers(0, 9),
        "lifecycle": st.just({"preDelete": {"labelsHandler": {"a": "b"}}}),
        "updateStrategy": st.fixed_dictionaries(
            {"type": st.just("RollingUpdate")},
            optional={
                "rollingUpdate": st.fixed_dictionaries(
                    {"rollingUpdateType": st.sampled_from(["Standard", "InPlaceIfPossible"])},
                    optional={
                        "partition": st.sampled_from([2, "50%"]),
                        "maxUnavailable": st.sampled_from([1, "30%"]),
                        "selector": st.just({"matchLabels": {"ring": "canary"}}),
                        "paused": st.booleans(),
                    },
                )
            },
        ),
    },
)
newest = st.one_of(st.just(dict[str, str]()), st.just({"hash": "1a"}))


@given(specs, st.booleans(), newest)
def test_round_trips(spec: dict[str, Any], progressive: bool, status: dict[str, str]) -> None:
    annotations = {PROGRESSIVE: "true"} if progressive else None
    alpha = document(V1ALPHA1, spec, annotations, **({"daemonSetHash": status["hash"]} if status else {}))
    assert convert(convert(alpha, V1BETA1), V1ALPHA1) == alpha
    scale = {"scaleStrategy": {"partitionedScaling": True}} if progressive else {}
    beta = document(V1BETA1, spec | scale, annotations, **({"updateRevision": status["hash"]} if status else {}))
    assert convert(convert(beta, V1ALPHA1), V1BETA1) == beta
