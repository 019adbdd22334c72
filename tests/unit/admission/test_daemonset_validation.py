"""DaemonSet validation: each line of daemonset.md §3.2 and §3.3 is a row, with Kubernetes' wording."""

from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.kinds.daemonset.api import default_daemonset
from flotilla_common.api.kinds.daemonset.validation import check_types, name_warnings, validate
from flotilla_common.api.versions import V1ALPHA1, V1BETA1

POD = {"containers": [{"name": "c", "image": "i:1"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
BOTH = [V1ALPHA1, V1BETA1]
NOT_NEGATIVE = "must be greater than or equal to 0"
PERCENT = "a valid percent string must be a numeric string followed by an ending '%'"
TOO_MUCH = "must not be greater than 100%"
ROLLING = "spec.updateStrategy.rollingUpdate"
NONE_LEFT = f"{ROLLING}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"


def bare(version: str = V1BETA1, **spec: Any) -> dict[str, Any]:
    """Return a DaemonSet as sent, and as stored without defaulting."""
    given = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE} | spec
    return {"apiVersion": version, "kind": "DaemonSet", "metadata": {"name": "probe"}, "spec": given}


def daemonset(version: str = V1BETA1, **spec: Any) -> dict[str, Any]:
    return default_daemonset(bare(version, **spec))


def rolling(version: str = V1BETA1, **fields: Any) -> dict[str, Any]:
    return daemonset(version, updateStrategy={"rollingUpdate": fields})


def texts(document: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(fault) for fault in validate(document, old)]


@pytest.mark.parametrize("version", BOTH)
def test_a_plain_daemonset_is_valid(version: str) -> None:
    assert texts(daemonset(version)) == []


SPEC_ROWS = [
    pytest.param({"selector": None}, ["spec.selector: Required value"], id="no selector"),
    pytest.param(
        {"selector": {}}, ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"], id="empty"
    ),
    pytest.param(
        {"selector": {"matchLabels": {"app": "b"}}},
        ['spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'],
        id="selector does not match",
    ),
    pytest.param(
        {"template": TEMPLATE | {"spec": POD | {"restartPolicy": "OnFailure", "activeDeadlineSeconds": 5}}},
        [
            'spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"',
            "spec.template.spec.activeDeadlineSeconds: Forbidden: a DaemonSet's pods have no deadline",
        ],
        id="pods that end",
    ),
    pytest.param(
        {"minReadySeconds": -1, "revisionHistoryLimit": -2},
        [
            f"spec.minReadySeconds: Invalid value: -1: {NOT_NEGATIVE}",
            f"spec.revisionHistoryLimit: Invalid value: -2: {NOT_NEGATIVE}",
        ],
        id="negative numbers",
    ),
    pytest.param({"minReadySeconds": 0, "revisionHistoryLimit": 0}, [], id="zeros"),
    pytest.param(
        {"lifecycle": {"inPlaceUpdate": {}}},
        ["spec.lifecycle.inPlaceUpdate: Forbidden: inPlaceUpdate hook has not supported yet"],
        id="hook of updates in place",
    ),
    pytest.param({"lifecycle": {"preDelete": {"labelsHandler": {"a": "b"}}, "preNormal": {}}}, [], id="other hooks"),
    pytest.param({"burstReplicas": "many"}, [], id="burst is not validated"),
    pytest.param({"burstReplicas": -1}, [], id="nor is its sign"),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("spec", "expected"), SPEC_ROWS)
def test_spec(version: str, spec: dict[str, Any], expected: list[str]) -> None:
    assert texts(daemonset(version, **spec)) == expected


def test_malformed_selector() -> None:
    (fault,) = texts(daemonset(selector={"matchExpressions": [{"key": "app", "operator": "Near"}]}))
    assert fault.startswith("spec.selector: Invalid value: ")
    assert "'Near' is not a valid label selector operator" in fault


def test_faults_of_the_template_come_after_the_selector() -> None:
    fault = Fault("spec.template.spec.containers", "Required value")
    found = [str(one) for one in validate(daemonset(selector={}), None, [fault])]
    assert found[1:] == ["spec.template.spec.containers: Required value"]


STRATEGY_ROWS = [
    pytest.param({"type": "OnDelete", "rollingUpdate": {"partition": -1}}, [], id="OnDelete: the rest is ignored"),
    pytest.param(
        {"type": "Other"},
        ['spec.updateStrategy: Unsupported value: "Other": supported values: "RollingUpdate", "OnDelete"'],
        id="unknown type",
    ),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("strategy", "expected"), STRATEGY_ROWS)
def test_update_strategy(version: str, strategy: dict[str, Any], expected: list[str]) -> None:
    assert texts(daemonset(version, updateStrategy=strategy)) == expected


NUMBER_ROWS = [
    pytest.param(1, [], id="1"),
    pytest.param("100%", [], id="100%"),
    pytest.param(1000, [], id="more than there are"),
    pytest.param(-1, [NOT_NEGATIVE], id="negative"),
    pytest.param("5", [PERCENT], id="a number in a string"),
    pytest.param("12.5%", [PERCENT], id="decimal"),
    pytest.param("101%", [TOO_MUCH], id="more than all"),
]


@pytest.mark.parametrize(("value", "details"), [*NUMBER_ROWS, pytest.param(0, [], id="0")])
def test_partition(value: Any, details: list[str]) -> None:
    shown = f'"{value}"' if isinstance(value, str) else value
    expected = [f"{ROLLING}.partition: Invalid value: {shown}: {detail}" for detail in details]
    assert texts(rolling(partition=value)) == expected


@pytest.mark.parametrize("name", ["maxUnavailable", "maxSurge"])
@pytest.mark.parametrize(("value", "details"), NUMBER_ROWS)
def test_limits(name: str, value: Any, details: list[str]) -> None:
    shown = f'"{value}"' if isinstance(value, str) else value
    expected = [f"{ROLLING}.{name}: Invalid value: {shown}: {detail}" for detail in details]
    found = texts(rolling(**{name: value}))
    assert [text for text in found if text != NONE_LEFT] == expected


BOTH_SET = f"{ROLLING}.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
COMBINATION_ROWS = [
    pytest.param({"maxUnavailable": 1, "maxSurge": 1}, [BOTH_SET], id="both"),
    pytest.param({"maxUnavailable": "5%", "maxSurge": 1}, [BOTH_SET], id="both, one in percent"),
    pytest.param({"maxUnavailable": 0, "maxSurge": 1}, [], id="surge alone"),
    pytest.param({"maxSurge": 1}, [], id="unavailable may be absent then"),
    pytest.param({"maxUnavailable": 1, "maxSurge": "0%"}, [], id="no surge, in percent"),
    pytest.param({"maxUnavailable": 0, "maxSurge": 0}, [NONE_LEFT], id="neither"),
    pytest.param({"maxUnavailable": "0%", "maxSurge": "0%"}, [NONE_LEFT], id="row 6"),
    pytest.param({"maxSurge": 0}, [NONE_LEFT], id="absent is 0, too"),
    pytest.param(
        {"maxUnavailable": "abc"},
        [f'{ROLLING}.maxUnavailable: Invalid value: "abc": {PERCENT}', NONE_LEFT],
        id="garbage counts as 0",
    ),
    pytest.param(
        {"maxUnavailable": "5"}, [f'{ROLLING}.maxUnavailable: Invalid value: "5": {PERCENT}'], id="a text of 5 as 5"
    ),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("fields", "expected"), COMBINATION_ROWS)
def test_combinations(version: str, fields: dict[str, Any], expected: list[str]) -> None:
    assert texts(rolling(version, **fields)) == expected


IN_PLACE = "InPlaceIfPossible"
TYPE_PATH = f"{ROLLING}.rollingUpdate.type"
TYPE_ROWS = [
    pytest.param(V1BETA1, {"rollingUpdateType": IN_PLACE, "maxUnavailable": 1}, [], id="in place"),
    pytest.param(
        V1BETA1,
        {"rollingUpdateType": IN_PLACE, "maxSurge": 1},
        [f"{ROLLING}.maxSurge: Required value: must be 0 for InPlaceIfPossible type"],
        id="in place with surge",
    ),
    pytest.param(V1ALPHA1, {"rollingUpdateType": "Surging"}, [], id="row 41"),
    pytest.param(V1ALPHA1, {"rollingUpdateType": "Surging", "maxUnavailable": 1}, [BOTH_SET], id="row 42"),
    pytest.param(
        V1BETA1,
        {"rollingUpdateType": "Surging"},
        [f'{TYPE_PATH}: Unsupported value: "Surging": supported values: "Standard", "InPlaceIfPossible"'],
        id="row 43",
    ),
    pytest.param(
        V1ALPHA1,
        {"rollingUpdateType": "Other"},
        [f'{TYPE_PATH}: Unsupported value: "Other": supported values: "Standard", "InPlaceIfPossible", "Surging"'],
        id="unknown",
    ),
]


@pytest.mark.parametrize(("version", "fields", "expected"), TYPE_ROWS)
def test_rolling_update_types(version: str, fields: dict[str, Any], expected: list[str]) -> None:
    assert texts(rolling(version, **fields)) == expected


@pytest.mark.parametrize(
    ("version", "strategy", "expected"),
    [
        pytest.param(V1BETA1, {"type": "RollingUpdate"}, [f"{ROLLING}: Required value"], id="no numbers"),
        pytest.param(
            V1BETA1,
            {},
            ['spec.updateStrategy: Unsupported value: "null": supported values: "RollingUpdate", "OnDelete"'],
            id="no type",
        ),
        pytest.param(
            V1ALPHA1,
            {"type": "RollingUpdate", "rollingUpdate": {"rollingUpdateType": "Surging", "maxUnavailable": 1}},
            [f"{ROLLING}.maxUnavailable: Required value: must be 0 for Surging type"],
            id="surging",
        ),
    ],
)
def test_without_defaults(version: str, strategy: dict[str, Any], expected: list[str]) -> None:
    assert texts(bare(version, updateStrategy=strategy)) == expected


CHANGES = [
    pytest.param({"minReadySeconds": 5, "revisionHistoryLimit": 1, "burstReplicas": 3}, True, id="numbers"),
    pytest.param({"updateStrategy": {"type": "OnDelete"}, "lifecycle": {"preDelete": {}}}, True, id="strategy, hooks"),
    pytest.param({"template": TEMPLATE | {"spec": POD | {"hostNetwork": True}}}, True, id="template"),
    pytest.param({"scaleStrategy": {"partitionedScaling": True}}, True, id="scale strategy"),
    pytest.param({"selector": {"matchLabels": {"app": "a"}, "matchExpressions": []}}, True, id="the same selector"),
    pytest.param(
        {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, False, id="row 44: another one"
    ),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("change", "allowed"), CHANGES)
def test_changes(version: str, change: dict[str, Any], allowed: bool) -> None:
    found = texts(daemonset(version, **change), daemonset(version))
    assert (found == []) == allowed
    assert all(text.startswith("spec: Forbidden: updates to daemonset spec for fields other than ") for text in found)


@pytest.mark.parametrize(
    "spec",
    [{"minReadySeconds": "5"}, {"updateStrategy": {"rollingUpdate": {"paused": "yes"}}}, {"lifecycle": []}],
    ids=["number", "switch", "object"],
)
def test_wrong_types(spec: dict[str, Any]) -> None:
    check_types(bare())
    with pytest.raises(ValueError, match="Expected"):
        check_types(bare(**spec))


@pytest.mark.parametrize(("length", "warned"), [(242, False), (243, True)])
def test_names_that_leave_no_room_for_a_hash(length: int, warned: bool) -> None:
    assert bool(name_warnings("a" * length)) == warned
