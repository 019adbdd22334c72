"""CloneSet validation: each line of cloneset.md §3.2 and §3.3 is a row, with Kubernetes' wording."""

from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault, invalid
from flotilla_common.api.admission.workload import template_changed
from flotilla_common.api.kinds.cloneset.api import default_cloneset
from flotilla_common.api.kinds.cloneset.validation import check_types, newly_to_delete, validate
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates

GATES = Gates.parse("")
TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j:1"}]},
}
BOTH = [V1ALPHA1, V1BETA1]


def cloneset(version: str, **spec: Any) -> dict[str, Any]:
    """Return a valid CloneSet with some members of its spec replaced, after defaulting."""
    given = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE} | spec
    document = {"apiVersion": version, "kind": "CloneSet", "metadata": {"name": "s"}, "spec": given}
    return default_cloneset(document, None, GATES)


def alpha(policy: str = "ReCreate", **rollout: Any) -> dict[str, Any]:
    return cloneset(V1ALPHA1, updateStrategy={"type": policy} | rollout)


def beta(policy: str = "ReCreate", **rollout: Any) -> dict[str, Any]:
    return cloneset(V1BETA1, updateStrategy={"rollingUpdate": {"podUpdatePolicy": policy} | rollout})


def texts(document: dict[str, Any]) -> list[str]:
    return [str(fault) for fault in validate(document)]


@pytest.mark.parametrize("version", BOTH)
def test_a_plain_cloneset_is_valid(version: str) -> None:
    assert texts(cloneset(version)) == []


SPEC_ROWS = [
    pytest.param(
        {"replicas": -1}, ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"], id="replicas"
    ),
    pytest.param({"selector": None}, ["spec.selector: Required value"], id="no selector"),
    pytest.param(
        {"selector": {}}, ["spec.selector: Invalid value: {}: empty selector is invalid for cloneset"], id="empty"
    ),
    pytest.param(
        {"selector": {"matchLabels": {"app": "b"}}},
        ['spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'],
        id="selector does not match",
    ),
    pytest.param(
        {"scaleStrategy": {"podsToDelete": ["p", "q", "p"]}},
        ['spec.scaleStrategy.podsToDelete: Invalid value: ["p","q","p"]: duplicated items [p]'],
        id="podsToDelete twice",
    ),
    pytest.param({"minReadySeconds": -1, "revisionHistoryLimit": -1}, [], id="not validated"),
    pytest.param({"scaleStrategy": {"maxUnavailable": "junk"}}, [], id="scaleStrategy.maxUnavailable not validated"),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("spec", "expected"), SPEC_ROWS)
def test_spec(version: str, spec: dict[str, Any], expected: list[str]) -> None:
    assert texts(cloneset(version, **spec)) == expected


def test_malformed_selector() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    (fault,) = texts(cloneset(V1BETA1, selector=selector))
    assert fault.startswith("spec.selector: Invalid value: ")
    assert "'Near' is not a valid label selector operator" in fault


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            {"restartPolicy": "Never"},
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            id="restart policy",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            "spec.template.spec.activeDeadlineSeconds: Forbidden: a CloneSet's pods have no deadline",
            id="deadline",
        ),
    ],
)
def test_template(pod: dict[str, Any], expected: str) -> None:
    assert texts(cloneset(V1BETA1, template=TEMPLATE | {"spec": TEMPLATE["spec"] | pod})) == [expected]


ROLLOUT_ROWS = [
    pytest.param({"partition": "5"}, ['partition: Invalid value: "5"'], id="partition without %"),
    pytest.param({"partition": -1}, ["partition: Invalid value: -1: must be greater"], id="negative partition"),
    pytest.param({"partition": "99.95%"}, [], id="decimal partition"),
    pytest.param({"maxUnavailable": "5"}, ['maxUnavailable: Invalid value: "5"'], id="maxUnavailable without %"),
    pytest.param({"maxUnavailable": "12.5%"}, [], id="decimal maxUnavailable"),
    pytest.param({"maxSurge": "x%"}, ['maxSurge: Invalid value: "x%"'], id="maxSurge unparsable"),
    pytest.param(
        {"maxUnavailable": 0, "maxSurge": 0},
        ["maxUnavailable: Invalid value: 0: maxUnavailable and maxSurge should not both be less than 1"],
        id="no progress possible",
    ),
    pytest.param({"maxUnavailable": 0, "maxSurge": 1}, [], id="surge only (seed)"),
    pytest.param({"maxUnavailable": 0, "maxSurge": "20%"}, [], id="surge rounds up"),
    pytest.param(
        {"priorityStrategy": {"weightPriority": [{"weight": 101, "matchSelector": {"matchLabels": {"a": "b"}}}]}},
        ["priorityStrategy: Required value: weight must be"],
        id="weight",
    ),
    pytest.param(
        {"priorityStrategy": {"weightPriority": [{"weight": 1, "matchSelector": {}}]}},
        ["priorityStrategy: Required value: selector can not be empty"],
        id="empty weight selector",
    ),
    pytest.param(
        {"priorityStrategy": {"orderPriority": [{"orderedKey": ""}]}},
        ["priorityStrategy: Required value: order key"],
        id="empty order key",
    ),
    pytest.param(
        {
            "priorityStrategy": {
                "orderPriority": [{"orderedKey": "k"}],
                "weightPriority": [{"weight": 1, "matchSelector": {"matchLabels": {"a": "b"}}}],
            }
        },
        ["priorityStrategy: Required value: only one"],
        id="both priorities",
    ),
    pytest.param(
        {"scatterStrategy": [{"key": "", "value": "v"}]}, ["scatterStrategy: Required value: key can"], id="scatter key"
    ),
    pytest.param(
        {"scatterStrategy": [{"key": "k", "value": "v"}, {"key": "k", "value": "v"}]},
        ["scatterStrategy: Required value: duplicated key=k value=v"],
        id="scatter twice",
    ),
    pytest.param({"scatterStrategy": [{"key": "k", "value": "v"}, {"key": "k", "value": "w"}]}, [], id="scatter"),
]


@pytest.mark.parametrize(("rollout", "expected"), ROLLOUT_ROWS)
def test_rollout_in_both_versions(rollout: dict[str, Any], expected: list[str]) -> None:
    for document, prefix in (
        (alpha(**rollout), "spec.updateStrategy."),
        (beta(**rollout), "spec.updateStrategy.rollingUpdate."),
    ):
        found = texts(document)
        assert len(found) == len(expected)
        assert all(text.startswith(prefix + start) for text, start in zip(found, expected, strict=True))


@pytest.mark.parametrize("make", [alpha, beta])
def test_in_place_only_cannot_surge(make: Any) -> None:
    (fault,) = texts(make("InPlaceOnly", maxSurge=1))
    assert "maxSurge: Invalid value: 1" in fault
    assert texts(make("InPlaceIfPossible", maxSurge=1)) == []


def test_nothing_to_update_needs_no_limits() -> None:
    document = cloneset(V1BETA1, replicas=0, updateStrategy={"rollingUpdate": {"maxUnavailable": 0}})
    assert texts(document) == []


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param({"type": "OnDelete"}, 0, id="OnDelete"),
        pytest.param({"type": "OnDelete", "rollingUpdate": {}}, 0, id="OnDelete with empty rollingUpdate"),
        pytest.param({"type": "Other"}, 1, id="unknown type"),
        pytest.param({"rollingUpdate": {"podUpdatePolicy": "Other"}}, 1, id="unknown policy"),
        pytest.param(
            {"rollingUpdate": {"inPlaceUpdateStrategy": {"imagePreDownloadParallelism": "30%"}}}, 1, id="percentage"
        ),
        pytest.param(
            {"rollingUpdate": {"inPlaceUpdateStrategy": {"imagePreDownloadParallelism": "3"}}},
            0,
            id="number in a string",
        ),
        pytest.param(
            {
                "rollingUpdate": {
                    "inPlaceUpdateStrategy": {
                        "imagePreDownloadParallelism": -1,
                        "imagePreDownloadTimeoutSeconds": -1,
                        "imagePreDownloadMinUpdatedReadyPods": -1,
                    }
                }
            },
            3,
            id="negative numbers",
        ),
    ],
)
def test_beta_strategy(strategy: dict[str, Any], expected: int) -> None:
    assert len(texts(cloneset(V1BETA1, updateStrategy=strategy))) == expected


def test_alpha_refuses_on_delete() -> None:
    assert texts(alpha("OnDelete")) == [
        'spec.updateStrategy.type: Invalid value: "OnDelete": must be ReCreate, InPlaceIfPossible or InPlaceOnly'
    ]


@pytest.mark.parametrize(
    ("version", "deadline", "ready", "expected"),
    [
        pytest.param(V1ALPHA1, 10, 10, ["must be greater than minReadySeconds"], id="not later than minReadySeconds"),
        pytest.param(V1ALPHA1, 11, 10, [], id="later"),
        pytest.param(V1ALPHA1, 2147483647, 2147483647, [], id="no deadline"),
        pytest.param(V1BETA1, 10, 10, [], id="v1beta1 does not check"),
    ],
)
def test_progress_deadline(version: str, deadline: int, ready: int, expected: list[str]) -> None:
    found = texts(cloneset(version, progressDeadlineSeconds=deadline, minReadySeconds=ready))
    assert found == [f"spec.progressDeadlineSeconds: Invalid value: {deadline}: {reason}" for reason in expected]


def test_what_others_found_comes_in() -> None:
    template, pod = Fault("spec.template.x", "bad"), invalid("spec.scaleStrategy.podsToDelete", "p", "gone")
    assert validate(cloneset(V1ALPHA1), None, [template], [pod]) == [template, pod]
    twice = cloneset(V1ALPHA1, scaleStrategy={"podsToDelete": ["p", "p"]})
    assert pod not in validate(twice, None, [], [pod])


@pytest.mark.parametrize("version", BOTH)
def test_only_the_selector_is_immutable(version: str) -> None:
    old = cloneset(version)
    new = cloneset(version, replicas=5, minReadySeconds=9, volumeClaimTemplates=[{}], lifecycle={"preDelete": {}})
    assert validate(new, old) == []
    moved = cloneset(version, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})
    assert [str(fault)[:16] for fault in validate(moved, old)] == ["spec: Forbidden:"]


def in_place_update(version: str, **pod: Any) -> list[str]:
    strategy = {"type": "InPlaceOnly"} if version == V1ALPHA1 else {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}
    old = cloneset(version, updateStrategy=strategy)
    template = {"metadata": {"labels": {"app": "a", "new": "label"}}, "spec": TEMPLATE["spec"] | pod}
    new = cloneset(version, updateStrategy=strategy, template=template)
    return [str(fault) for fault in validate(new, old)]


def test_in_place_only_updates() -> None:
    images = [{"name": "c", "image": "i:2"}, {"name": "d", "image": "j:1"}]
    assert in_place_update(V1ALPHA1, containers=images) == []
    assert in_place_update(V1ALPHA1, hostNetwork=True) == [
        "spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /hostNetwork"
    ]
    assert in_place_update(V1ALPHA1, containers=images[:1]) == [
        "spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found remove /containers/1"
    ]
    assert in_place_update(V1BETA1, hostNetwork=True) == []


def test_which_pods_are_looked_up() -> None:
    old = cloneset(V1ALPHA1, scaleStrategy={"podsToDelete": ["p"]})
    new = cloneset(V1ALPHA1, scaleStrategy={"podsToDelete": ["p", "q"]})
    assert newly_to_delete(new, old) == ["q"]
    assert newly_to_delete(new, None) == ["p", "q"]
    assert newly_to_delete(cloneset(V1BETA1, scaleStrategy={"podsToDelete": ["q"]}), None) == []
    assert newly_to_delete(cloneset(V1ALPHA1, scaleStrategy={"podsToDelete": ["q", "q"]}), None) == []


def test_template_changed() -> None:
    old = cloneset(V1BETA1)
    assert template_changed(old, None)
    assert not template_changed(cloneset(V1BETA1, replicas=7), old)
    assert template_changed(cloneset(V1BETA1, volumeClaimTemplates=[{}]), old)


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(
    "spec",
    [{"replicas": "two"}, {"minReadySeconds": []}, {"scaleStrategy": {"podsToDelete": "p"}}, {"selector": []}],
    ids=["replicas", "minReadySeconds", "podsToDelete", "selector"],
)
def test_wrong_types_are_undecodable(version: str, spec: dict[str, Any]) -> None:
    check_types(cloneset(version))
    with pytest.raises(ValueError, match="Expected"):
        check_types({"apiVersion": version, "spec": spec})
