"""StatefulSet validation: each line of statefulset.md §3.2 and §3.3 is a row, with Kubernetes' wording."""

from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.kinds.statefulset.api import default_statefulset
from flotilla_common.api.kinds.statefulset.validation import check_types, validate
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates

GATES = Gates.parse("")
READY = [{"conditionType": "InPlaceUpdateReady"}]
POD = {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j:1"}], "readinessGates": READY}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
BOTH = [V1ALPHA1, V1BETA1]
NOT_NEGATIVE = "must be greater than or equal to 0"
PARALLEL_ONLY = "can only work with Parallel PodManagementPolicyType"
PERCENT = "a valid percent string must be a numeric string followed by an ending '%'"
ROLLING = "spec.updateStrategy.rollingUpdate"


def statefulset(version: str = V1BETA1, *, name: str = "web", **spec: Any) -> dict[str, Any]:
    """Return a valid StatefulSet with some members of its spec replaced, after defaulting."""
    given = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE} | spec
    document = {"apiVersion": version, "kind": "StatefulSet", "metadata": {"name": name}, "spec": given}
    return default_statefulset(document, None, GATES)


def rolling(version: str = V1BETA1, *, parallel: bool = True, **fields: Any) -> dict[str, Any]:
    policy = "Parallel" if parallel else "OrderedReady"
    return statefulset(version, podManagementPolicy=policy, updateStrategy={"rollingUpdate": fields})


def texts(document: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(fault) for fault in validate(document, old)]


@pytest.mark.parametrize("version", BOTH)
def test_a_plain_statefulset_is_valid(version: str) -> None:
    assert texts(statefulset(version)) == []


SPEC_ROWS = [
    pytest.param({"replicas": -1}, [f"spec.replicas: Invalid value: -1: {NOT_NEGATIVE}"], id="replicas"),
    pytest.param(
        {"podManagementPolicy": "Other"},
        ["spec.podManagementPolicy: Invalid value: \"Other\": must be 'OrderedReady' or 'Parallel'"],
        id="pod management",
    ),
    pytest.param({"selector": None}, ["spec.selector: Required value"], id="no selector"),
    pytest.param(
        {"selector": {}}, ["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"], id="empty"
    ),
    pytest.param(
        {"selector": {"matchLabels": {"app": "b"}}},
        ['spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'],
        id="selector does not match",
    ),
    pytest.param(
        {"template": TEMPLATE | {"spec": POD | {"restartPolicy": "Never", "activeDeadlineSeconds": 5}}},
        [
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            "spec.template.spec.activeDeadlineSeconds: Forbidden: a StatefulSet's pods have no deadline",
        ],
        id="pods that end",
    ),
    pytest.param({"revisionHistoryLimit": -1, "serviceName": "any", "lifecycle": {}}, [], id="not validated"),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("spec", "expected"), SPEC_ROWS)
def test_spec(version: str, spec: dict[str, Any], expected: list[str]) -> None:
    assert texts(statefulset(version, **spec)) == expected


def test_malformed_selector() -> None:
    (fault,) = texts(statefulset(selector={"matchExpressions": [{"key": "app", "operator": "Near"}]}))
    assert fault.startswith("spec.selector: Invalid value: ")
    assert "'Near' is not a valid label selector operator" in fault


def test_what_defaulting_did_not_fill_in_is_required() -> None:
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
    bare = {"apiVersion": V1BETA1, "metadata": {"name": "web"}, "spec": spec}
    assert texts(bare) == ["spec.podManagementPolicy: Required value", "spec.updateStrategy: Required value"]
    strategy = {"type": "RollingUpdate", "rollingUpdate": {}}
    empty = bare | {"spec": spec | {"podManagementPolicy": "Parallel", "updateStrategy": strategy}}
    assert texts(empty) == [f"{ROLLING}.maxUnavailable: Required value", f"{ROLLING}.podUpdatePolicy: Required value"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("0-web-1", [], id="a label"),
        pytest.param("a" * 63, [], id="longest"),
        pytest.param("a" * 64, ["must be no more than 63 characters"], id="too long"),
        pytest.param("web.shop", ["a lowercase RFC 1123 label must consist of"], id="a subdomain is none"),
        pytest.param("-web", ["a lowercase RFC 1123 label must consist of"], id="begins with a dash"),
    ],
)
def test_name(name: str, expected: list[str]) -> None:
    found = texts(statefulset(name=name))
    assert len(found) == len(expected)
    assert all(
        text.startswith(f'metadata.name: Invalid value: "{name}": {end}')
        for text, end in zip(found, expected, strict=True)
    )


ORDINAL_ROWS = [
    pytest.param([0, 7, "2-5", "9-9", "0-2000000000"], [], id="numbers and ranges"),
    pytest.param([1, -1], ["spec: Invalid value: -1: 1 th reserve ordinal is negative: -1"], id="negative"),
    pytest.param(
        ["5"],
        [
            'spec: Invalid value: "5": 0 th reserve ordinal is not a valid range: 5',
            "spec: Invalid value: \"5\": 0 th reserve ordinal is invalid: 5, err = '5' is not a range of ordinals",
        ],
        id="a number in a string",
    ),
    pytest.param(
        [0, "5-3"],
        ["spec: Invalid value: \"5-3\": 1 th reserve ordinal is invalid: 5-3, err = '5-3' ends before it starts"],
        id="ends before it starts",
    ),
]


@pytest.mark.parametrize(("reserved", "expected"), ORDINAL_ROWS)
def test_reserved_ordinals(reserved: list[Any], expected: list[str]) -> None:
    assert texts(statefulset(reserveOrdinals=reserved)) == expected


def test_first_ordinal() -> None:
    assert texts(statefulset(ordinals={"start": 5})) == texts(statefulset(ordinals={})) == []
    assert texts(statefulset(ordinals={"start": -1})) == [f"spec.ordinals.start: Invalid value: -1: {NOT_NEGATIVE}"]


LESS = "should not be less than 1"
LIMIT_ROWS = [
    pytest.param(1, True, [], id="1"),
    pytest.param(1, False, [], id="1 in order"),
    pytest.param(7, True, [], id="7"),
    pytest.param("1%", True, [], id="a part of one pod"),
    pytest.param("150%", True, [], id="no upper bound"),
    pytest.param(0, True, [LESS], id="0"),
    pytest.param("0%", True, [LESS], id="0%"),
    pytest.param(-1, True, [NOT_NEGATIVE, LESS], id="negative"),
    pytest.param("5", True, [PERCENT], id="a number in a string"),
    pytest.param("12.5%", True, [PERCENT], id="decimal"),
    pytest.param(2, False, [PARALLEL_ONLY], id="row 26: 2 in order"),
    pytest.param("100%", False, [PARALLEL_ONLY], id="row 26: 100% in order"),
    pytest.param(0, False, [LESS, PARALLEL_ONLY], id="0 in order"),
    pytest.param("5", False, [PERCENT, PARALLEL_ONLY], id="each adds its own"),
]


@pytest.mark.parametrize(("value", "parallel", "details"), LIMIT_ROWS)
def test_limits(value: Any, parallel: bool, details: list[str]) -> None:
    shown = f'"{value}"' if isinstance(value, str) else value
    updating = texts(rolling(parallel=parallel, maxUnavailable=value))
    assert updating == [f"{ROLLING}.maxUnavailable: Invalid value: {shown}: {detail}" for detail in details]
    policy = "Parallel" if parallel else "OrderedReady"
    scaling = texts(statefulset(podManagementPolicy=policy, scaleStrategy={"maxUnavailable": value}))
    assert scaling == [f"spec.scaleStrategy.maxUnavailable: Invalid value: {shown}: {one}" for one in details]


def test_scaling_needs_no_limit() -> None:
    assert texts(statefulset(scaleStrategy={})) == []


STRATEGY_ROWS = [
    pytest.param({"type": "OnDelete"}, [], id="OnDelete"),
    pytest.param(
        {"type": "OnDelete", "rollingUpdate": {"partition": -1}},
        [f"{ROLLING}: Invalid value: {{\"partition\":-1}}: only allowed for updateStrategy 'RollingUpdate'"],
        id="OnDelete with rollingUpdate",
    ),
    pytest.param(
        {"type": "Other"},
        ["spec.updateStrategy: Invalid value: {\"type\":\"Other\"}: must be 'RollingUpdate' or 'OnDelete'"],
        id="unknown type",
    ),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("strategy", "expected"), STRATEGY_ROWS)
def test_update_strategy(version: str, strategy: dict[str, Any], expected: list[str]) -> None:
    assert texts(statefulset(version, updateStrategy=strategy)) == expected


WEIGHT = {"weight": 1, "matchSelector": {"matchLabels": {"a": "b"}}}
ROLLING_ROWS = [
    pytest.param({"partition": 7}, [], id="partition beyond replicas"),
    pytest.param({"partition": -1}, [f"partition: Invalid value: -1: {NOT_NEGATIVE}"], id="partition"),
    pytest.param({"minReadySeconds": 300}, [], id="longest minReadySeconds"),
    pytest.param({"minReadySeconds": -1}, [f"minReadySeconds: Invalid value: -1: {NOT_NEGATIVE}"], id="negative"),
    pytest.param(
        {"minReadySeconds": 301},
        ["minReadySeconds: Invalid value: 301: must be no more than 300 seconds"],
        id="minReadySeconds",
    ),
    pytest.param(
        {"podUpdatePolicy": "Other"},
        ['podUpdatePolicy: Invalid value: "Other": must be one of ReCreate, InPlaceIfPossible, InPlaceOnly'],
        id="policy",
    ),
    pytest.param({"unorderedUpdate": {}}, [], id="unordered"),
    pytest.param(
        {"unorderedUpdate": {"priorityStrategy": {"weightPriority": [WEIGHT]}}}, [], id="unordered by weight (seed)"
    ),
    pytest.param(
        {"unorderedUpdate": {"priorityStrategy": {"orderPriority": [{"orderedKey": "k"}]}}}, [], id="by key (seed)"
    ),
    pytest.param(
        {"unorderedUpdate": {"priorityStrategy": {"weightPriority": [WEIGHT | {"weight": 101}]}}},
        ["unorderedUpdate.priorityStrategy: Required value: weight must be valid number in the [0, 100], got 101"],
        id="weight",
    ),
    pytest.param(
        {"unorderedUpdate": {"priorityStrategy": {"weightPriority": [WEIGHT | {"weight": -1}]}}},
        ["unorderedUpdate.priorityStrategy: Required value: weight must be valid number in the [0, 100], got -1"],
        id="negative weight",
    ),
    pytest.param(
        {"unorderedUpdate": {"priorityStrategy": {"weightPriority": [WEIGHT | {"matchSelector": {}}]}}},
        ["unorderedUpdate.priorityStrategy: Required value: selector can not be empty"],
        id="empty weight selector",
    ),
    pytest.param(
        {"unorderedUpdate": {"priorityStrategy": {"orderPriority": [{"orderedKey": ""}]}}},
        ["unorderedUpdate.priorityStrategy: Required value: order key can not be empty"],
        id="empty order key",
    ),
    pytest.param(
        {"unorderedUpdate": {"priorityStrategy": {"weightPriority": [WEIGHT], "orderPriority": [{"orderedKey": "k"}]}}},
        ["unorderedUpdate.priorityStrategy: Required value: only one of weightPriority and orderPriority can be used"],
        id="both priorities",
    ),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("fields", "expected"), ROLLING_ROWS)
def test_rolling_update(version: str, fields: dict[str, Any], expected: list[str]) -> None:
    assert texts(rolling(version, **fields)) == [f"{ROLLING}.{text}" for text in expected]


def test_an_invalid_weight_selector() -> None:
    term = {"weight": 1, "matchSelector": {"matchLabels": {"a b": "c"}}}
    (fault,) = texts(rolling(unorderedUpdate={"priorityStrategy": {"weightPriority": [term]}}))
    assert fault.startswith(f"{ROLLING}.unorderedUpdate.priorityStrategy: Required value: invalid selector matchLabels")


def test_pods_in_order_have_no_other_order() -> None:
    assert texts(rolling(parallel=False, unorderedUpdate={})) == [
        f"{ROLLING}.unorderedUpdate: Required value: unorderedUpdate {PARALLEL_ONLY}"
    ]


@pytest.mark.parametrize("policy", ["InPlaceIfPossible", "InPlaceOnly"])
@pytest.mark.parametrize(
    ("gates", "shown"),
    [
        pytest.param(None, '"null"', id="none"),
        pytest.param([{"conditionType": "Other"}], '[{"conditionType":"Other"}]', id="another"),
    ],
)
def test_updates_in_place_need_the_readiness_gate(policy: str, gates: Any, shown: str) -> None:
    template = TEMPLATE | {"spec": {"containers": POD["containers"]} | ({"readinessGates": gates} if gates else {})}
    strategy = {"rollingUpdate": {"podUpdatePolicy": policy}}
    detail = f"must contains InPlaceUpdateReady when podUpdatePolicy is {policy}"
    assert texts(statefulset(template=template, updateStrategy=strategy)) == [
        f"spec.template.spec.readinessGates: Invalid value: {shown}: {detail}"
    ]
    assert texts(statefulset(updateStrategy=strategy)) == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param({"whenDeleted": "Delete"}, [], id="one of them"),
        pytest.param({"whenDeleted": "Delete", "whenScaled": "Delete"}, [], id="both"),
        pytest.param(
            {"whenDeleted": "Keep", "whenScaled": "delete"},
            [
                'whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"',
                'whenScaled: Unsupported value: "delete": supported values: "Retain", "Delete"',
            ],
            id="unknown",
        ),
    ],
)
def test_retention_of_claims(policy: dict[str, Any], expected: list[str]) -> None:
    path = "spec.persistentVolumeClaimRetentionPolicy"
    document = statefulset(persistentVolumeClaimRetentionPolicy=policy)
    assert texts(document) == [f"{path}.{text}" for text in expected]


def test_what_others_found_comes_in() -> None:
    template, claim = Fault("spec.template.x", "bad"), Fault("spec.volumeClaimTemplates[data]", "small")
    assert validate(statefulset(), statefulset(), [template], [claim]) == [template, claim]


MUTABLE = {
    "replicas": 5,
    "template": TEMPLATE | {"spec": POD | {"hostNetwork": True}},
    "updateStrategy": {"type": "OnDelete"},
    "scaleStrategy": {"maxUnavailable": 1},
    "reserveOrdinals": [1],
    "ordinals": {"start": 1},
    "lifecycle": {"preDelete": {}},
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
    "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
    "volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"},
    "revisionHistoryLimit": 1,
}


@pytest.mark.parametrize("field", MUTABLE)
def test_mutable_fields(field: str) -> None:
    assert texts(statefulset(**{field: MUTABLE[field]}), statefulset()) == []


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(
    "spec",
    [
        {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
        {"serviceName": "other"},
        {"podManagementPolicy": "Parallel"},
    ],
    ids=["selector", "serviceName", "podManagementPolicy"],
)
def test_immutable_fields(version: str, spec: dict[str, Any]) -> None:
    (fault,) = texts(statefulset(version, **spec), statefulset(version, serviceName="headless"))
    assert fault == (
        "spec: Forbidden: updates to statefulset spec for fields other than replicas, template, updateStrategy, "
        "scaleStrategy, reserveOrdinals, ordinals, lifecycle, persistentVolumeClaimRetentionPolicy, "
        "volumeClaimTemplates, volumeClaimUpdateStrategy, revisionHistoryLimit are forbidden"
    )


def test_what_says_the_same_is_no_change() -> None:
    old = statefulset(selector={"matchLabels": {"app": "a"}, "matchExpressions": []}, serviceName="")
    assert texts(statefulset(), old) == []


IMAGES_ONLY = "currently only image update is allowed for InPlaceOnly"
IN_PLACE_ROWS = [
    pytest.param({"containers": [{"name": "c", "image": "i:2"}, {"name": "d", "image": "j:1"}]}, "", id="an image"),
    pytest.param({"hostNetwork": True}, "add /hostNetwork", id="a new field"),
    pytest.param({"containers": [{"name": "c", "image": "i:1"}]}, "remove /containers/1", id="one container less"),
    pytest.param(
        {"containers": [{"name": "c", "image": "i:1", "imagePullPolicy": "Never"}, {"name": "d", "image": "j:1"}]},
        "replace /containers/0/imagePullPolicy",
        id="beside the image",
    ),
    pytest.param(
        {"initContainers": [{"name": "e", "image": "k:2"}]}, "replace /initContainers/0/image", id="an init container"
    ),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("pod", "change"), IN_PLACE_ROWS)
def test_updates_in_place_only(version: str, pod: dict[str, Any], change: str) -> None:
    strategy = {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}
    spec = POD | {"initContainers": [{"name": "e", "image": "k:1"}]}
    labels = {"labels": {"app": "a", "new": "label"}}
    new = statefulset(version, updateStrategy=strategy, template={"metadata": labels, "spec": spec | pod})
    # The strategy that counts is the new one.
    old = statefulset(version, template=TEMPLATE | {"spec": spec})
    expected = f"spec.template: Forbidden: invalid template modified with InPlaceOnly strategy: {change}, {IMAGES_ONLY}"
    assert texts(new, old) == ([expected] if change else [])
    freely = statefulset(version, template={"metadata": labels, "spec": spec | pod})
    assert texts(freely, old) == []


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": "two"},
        {"selector": []},
        {"serviceName": 1},
        {"updateStrategy": {"rollingUpdate": {"partition": "50%"}}},
        {"volumeClaimTemplates": {}},
    ],
    ids=["replicas", "selector", "serviceName", "a partition has no percent form", "volumeClaimTemplates"],
)
def test_wrong_types_are_undecodable(version: str, spec: dict[str, Any]) -> None:
    check_types(statefulset(version))
    with pytest.raises(ValueError, match="Expected"):
        check_types({"apiVersion": version, "spec": spec})
