"""CloneSet conversion: the rules of cloneset.md §2.4, and what a round trip may lose."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.cloneset.types import (
    EXCLUDE_PREPARING_DELETE,
    MIN_UPDATED_READY,
    PARALLELISM,
    TIMEOUT,
    convert,
)
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.api.workload import POLICIES


def document(version: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "CloneSet", "metadata": {"name": "sample"} | metadata, "spec": spec}


def beta(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return convert(document(V1ALPHA1, spec, **metadata), V1BETA1)["spec"]


def alpha(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return convert(document(V1BETA1, spec, **metadata), V1ALPHA1)["spec"]


@pytest.mark.parametrize(
    ("given_strategy", "expected"),
    [
        pytest.param({}, {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}}, id="empty"),
        pytest.param(
            {"type": "InPlaceOnly", "partition": 3, "paused": True},
            {
                "type": "RollingUpdate",
                "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "partition": 3, "paused": True},
            },
            id="policy and numbers move",
        ),
        pytest.param(
            {"type": "Other"}, {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}}, id="unknown"
        ),
        pytest.param({"type": "OnDelete", "partition": 3}, {"type": "OnDelete"}, id="OnDelete drops the rest"),
        pytest.param(
            {"type": "ReCreate", "inPlaceUpdateStrategy": {"imagePreDownloadParallelism": 2}},
            {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate", "inPlaceUpdateStrategy": {}}},
            id="v1alpha1 pre-download fields are ignored",
        ),
    ],
)
def test_strategy_to_beta(given_strategy: dict[str, Any], expected: dict[str, Any]) -> None:
    assert beta({"updateStrategy": given_strategy})["updateStrategy"] == expected


@pytest.mark.parametrize(
    ("given_strategy", "expected"),
    [
        pytest.param({}, {"type": "ReCreate"}, id="empty"),
        pytest.param(
            {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxSurge": 1}},
            {"type": "InPlaceIfPossible", "maxSurge": 1},
            id="policy and numbers move",
        ),
        pytest.param({"type": "OnDelete"}, {"type": "OnDelete"}, id="OnDelete"),
        pytest.param({"rollingUpdate": {"podUpdatePolicy": "x"}}, {"type": "ReCreate"}, id="unknown policy"),
        pytest.param(
            {"rollingUpdate": {"inPlaceUpdateStrategy": {}}},
            {"type": "ReCreate"},
            id="empty in-place strategy vanishes",
        ),
        pytest.param(
            {"rollingUpdate": {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 0}}},
            {"type": "ReCreate"},
            id="zero, too",
        ),
        pytest.param(
            {"rollingUpdate": {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 9}}},
            {"type": "ReCreate", "inPlaceUpdateStrategy": {"gracePeriodSeconds": 9}},
            id="grace period",
        ),
    ],
)
def test_strategy_to_alpha(given_strategy: dict[str, Any], expected: dict[str, Any]) -> None:
    assert alpha({"updateStrategy": given_strategy})["updateStrategy"] == expected


@pytest.mark.parametrize(
    ("scale", "expected"),
    [({}, True), ({"disablePVCReuse": False}, True), ({"disablePVCReuse": True}, False)],
    ids=["unset reuses", "false reuses", "true does not"],
)
def test_claim_reuse_to_beta(scale: dict[str, Any], expected: bool) -> None:
    assert beta({"scaleStrategy": scale})["scaleStrategy"] == {"enablePVCReuse": expected}


@pytest.mark.parametrize(
    ("scale", "expected"),
    [({}, {"disablePVCReuse": True}), ({"enablePVCReuse": True, "podsToDelete": ["a"]}, {"podsToDelete": ["a"]})],
    ids=["unset does not reuse", "true reuses"],
)
def test_claim_reuse_to_alpha(scale: dict[str, Any], expected: dict[str, Any]) -> None:
    assert alpha({"scaleStrategy": scale})["scaleStrategy"] == expected


def test_label_excludes_preparing_delete() -> None:
    labels = {EXCLUDE_PREPARING_DELETE: "true"}
    assert beta({}, labels=labels)["scaleStrategy"] == {"enablePVCReuse": True, "excludePreparingDelete": True}
    assert "excludePreparingDelete" not in alpha({"scaleStrategy": {"excludePreparingDelete": True}})["scaleStrategy"]


def test_annotations_become_pre_download_fields() -> None:
    annotations = {PARALLELISM: "20%", TIMEOUT: "60", MIN_UPDATED_READY: "many"}
    rolling = beta({"updateStrategy": {"type": "InPlaceOnly"}}, annotations=annotations)["updateStrategy"][
        "rollingUpdate"
    ]
    assert rolling["inPlaceUpdateStrategy"] == {
        "imagePreDownloadParallelism": "20%",
        "imagePreDownloadTimeoutSeconds": 60,
    }


def test_pre_download_fields_become_annotations() -> None:
    in_place = {"imagePreDownloadParallelism": 2, "imagePreDownloadTimeoutSeconds": 60}
    source = document(V1BETA1, {"updateStrategy": {"rollingUpdate": {"inPlaceUpdateStrategy": in_place}}})
    converted = convert(source, V1ALPHA1)
    assert converted["metadata"]["annotations"] == {PARALLELISM: "2", TIMEOUT: "60"}
    assert converted["spec"]["updateStrategy"] == {"type": "ReCreate", "inPlaceUpdateStrategy": {}}
    assert "annotations" not in source["metadata"]
    back = convert(converted, V1BETA1)["spec"]["updateStrategy"]["rollingUpdate"]
    assert back["inPlaceUpdateStrategy"] == in_place


numbers = st.integers(0, 5) | st.sampled_from(["0%", "50%", "99.95%"])
moved = st.fixed_dictionaries(
    {},
    optional={
        "partition": numbers,
        "maxUnavailable": numbers,
        "maxSurge": numbers,
        "paused": st.booleans(),
        "scatterStrategy": st.just([{"key": "a", "value": "b"}]),
        "priorityStrategy": st.just({"orderPriority": [{"orderedKey": "k"}]}),
    },
)
shared = st.fixed_dictionaries(
    {"selector": st.just({"matchLabels": {"a": "b"}}), "template": st.just({"spec": {"future": 1}})},
    optional={
        "replicas": st.integers(0, 9),
        "minReadySeconds": st.integers(0, 9),
        "lifecycle": st.just({"preDelete": {}}),
    },
)
alphas = st.builds(
    lambda base, rest, policy, grace, reuse: (
        base
        | {
            "updateStrategy": {"type": policy}
            | rest
            | ({"inPlaceUpdateStrategy": {"gracePeriodSeconds": grace}} if grace else {}),
            "scaleStrategy": {"podsToDelete": ["p"]} | ({"disablePVCReuse": True} if reuse else {}),
        }
    ),
    shared,
    moved,
    st.sampled_from(POLICIES),
    st.integers(0, 3),
    st.booleans(),
)
pre_download = st.fixed_dictionaries(
    {},
    optional={
        "gracePeriodSeconds": st.integers(1, 9),
        "imagePreDownloadParallelism": numbers,
        "imagePreDownloadTimeoutSeconds": st.integers(0, 99),
        "imagePreDownloadMinUpdatedReadyPods": st.integers(0, 99),
    },
)
betas = st.builds(
    lambda base, rest, policy, in_place, reuse: (
        base
        | {
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"podUpdatePolicy": policy}
                | rest
                | ({"inPlaceUpdateStrategy": in_place} if in_place else {}),
            },
            "scaleStrategy": {"enablePVCReuse": reuse},
        }
    ),
    shared,
    moved,
    st.sampled_from(POLICIES),
    pre_download,
    st.booleans(),
)


@given(alphas)
def test_alpha_survives_the_hub(spec: dict[str, Any]) -> None:
    source = document(V1ALPHA1, spec)
    untouched = copy.deepcopy(source)
    assert convert(convert(source, V1BETA1), V1ALPHA1) == source == untouched


@given(betas)
def test_hub_survives_alpha_but_for_annotations(spec: dict[str, Any]) -> None:
    source = document(V1BETA1, spec)
    back = convert(convert(source, V1ALPHA1), V1BETA1)
    assert back["spec"] == source["spec"]
    assert set(back["metadata"].pop("annotations", {})) <= {PARALLELISM, TIMEOUT, MIN_UPDATED_READY}
    assert back["metadata"] == source["metadata"]


@pytest.mark.parametrize("label", [None, "true", "false"])
@pytest.mark.parametrize("field", [None, True, False])
def test_excluded_pods_stay_as_v1beta1_says(label: str | None, field: bool | None) -> None:
    """v1alpha1 has a label for it, which stays in storage, and may differ from the field."""
    labels = {"a": "b"} | ({EXCLUDE_PREPARING_DELETE: label} if label else {})
    scale = {"enablePVCReuse": True} | ({} if field is None else {"excludePreparingDelete": field})
    spec = {"scaleStrategy": scale, "updateStrategy": {"type": "OnDelete"}}
    stored = {"apiVersion": V1BETA1, "kind": "CloneSet", "metadata": {"name": "web", "labels": labels}, "spec": spec}
    view = convert(stored, V1ALPHA1)
    back = convert(view, V1BETA1)["spec"]["scaleStrategy"].get("excludePreparingDelete")
    assert back == (field if field is not None else label == "true" or None)
    view["metadata"]["labels"][EXCLUDE_PREPARING_DELETE] = "true"
    assert convert(view, V1BETA1)["spec"]["scaleStrategy"]["excludePreparingDelete"] is True


def test_a_rolling_update_beside_on_delete_is_kept() -> None:
    rolling = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}
    strategy = {"type": "OnDelete", "rollingUpdate": rolling}
    spec = {"scaleStrategy": {"enablePVCReuse": True}, "updateStrategy": strategy}
    stored = {"apiVersion": V1BETA1, "kind": "CloneSet", "metadata": {"name": "web"}, "spec": spec}
    view = convert(stored, V1ALPHA1)
    assert view["spec"]["updateStrategy"] == {"type": "OnDelete", "maxUnavailable": 2}
    assert convert(view, V1BETA1)["spec"]["updateStrategy"] == strategy
    view["spec"]["updateStrategy"] = {"type": "InPlaceOnly", "maxUnavailable": 3}
    changed = {"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 3}
    assert convert(view, V1BETA1)["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": changed}
