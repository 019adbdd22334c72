"""The pods that the apiserver sends to the pod webhook, as entries with conditions in CEL (ADR 15)."""

import msgspec
import pytest

from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.podrules import (
    LACKS_READINESS_GATE,
    LAUNCHES_IN_ORDER,
    PodRule,
    decoded,
    encoded,
    is_probe,
    labels_match,
    pod_entries,
)

LABELS = "(has(object.metadata.labels) ? object.metadata.labels : {})"
WITHIN = PodRule("within", "w", "a")
ALSO = PodRule("also", "w", "b")
ANYWHERE = PodRule("anywhere", "o")
TEAM = PodRule("team", "t", namespace_labels='{"matchLabels":{"team":"x"}}')


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, "true"),
        ({"matchLabels": {"a": "b"}}, f'"a" in {LABELS} && object.metadata.labels["a"] == "b"'),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]},
            f'"a" in {LABELS} && object.metadata.labels["a"] in ["b", "c"]',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
            f'!("a" in {LABELS} && object.metadata.labels["a"] in ["b"])',
        ),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, f'"a" in {LABELS}'),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, f'!("a" in {LABELS})'),
    ],
    ids=["empty", "equal", "In", "NotIn", "Exists", "DoesNotExist"],
)
def test_labels(selector: dict[str, object], expected: str) -> None:
    assert labels_match(msgspec.convert(selector, LabelSelector)) == expected


def conditions(*rules: PodRule) -> list[str]:
    probes = ", ".join(f'"{name}"' for name in sorted(rule.probe for rule in rules if rule.probed))
    probe = (
        "request.resource.resource == 'podtemplates' ? has(object.metadata.name) && object.metadata.name in "
        f"[{probes}] : "
    )
    entries = pod_entries(rules)
    return [entry["matchConditions"][0]["expression"].replace(probe, "PROBE ") for entry in entries]


def test_no_rules_no_entry() -> None:
    assert pod_entries([]) == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([LACKS_READINESS_GATE], [f"({LACKS_READINESS_GATE.expression})"], id="everywhere, not probed"),
        pytest.param([WITHIN], ['PROBE ((request.namespace == "a" && (w)))'], id="one namespace"),
        pytest.param([WITHIN, ALSO], ['PROBE ((request.namespace in ["a", "b"] && (w)))'], id="two namespaces"),
        pytest.param([ANYWHERE, WITHIN], ['PROBE ((o) || (request.namespace == "a" && (w)))'], id="both"),
        pytest.param([ANYWHERE, PodRule("more", "o", "a")], ["PROBE ((o))"], id="everywhere is also there"),
        pytest.param([TEAM], ["PROBE (false)", "(t)"], id="namespaces by their labels"),
        pytest.param([TEAM, ANYWHERE], ["PROBE ((o))", "((t)) && !((o))"], id="nobody is sent twice"),
    ],
)
def test_conditions(rules: list[PodRule], expected: list[str]) -> None:
    assert conditions(*rules) == expected


def test_namespaces_by_labels_are_the_apiservers_business() -> None:
    first, second = pod_entries([TEAM, LAUNCHES_IN_ORDER])
    assert [entry["name"].partition("-")[0].partition(".")[0] for entry in (first, second)] == ["mpod", "mpod"]
    assert first["name"] == "mpod.kb.io"
    assert second["name"].startswith("mpod-")
    exempt = [one["key"] for one in first["namespaceSelector"]["matchExpressions"]]
    assert exempt == ["control-plane", "kubernetes.io/metadata.name"]
    assert second["namespaceSelector"]["matchExpressions"][2:] == [{"key": "team", "operator": "In", "values": ["x"]}]
    assert [rule["resources"] for rule in first["rules"]] == [["pods"], ["podtemplates"]]
    assert [rule["resources"] for rule in second["rules"]] == [["pods"]]


def test_rules_cross_as_an_annotation() -> None:
    rules = {WITHIN, TEAM, LAUNCHES_IN_ORDER}
    assert decoded(encoded(rules)) == rules
    assert decoded("") == decoded("{") == decoded('[{"why":1}]') == frozenset()
    assert encoded({WITHIN, TEAM}) == encoded({TEAM, WITHIN})


def test_every_rule_has_a_probe_of_its_own() -> None:
    probes = {rule.probe for rule in (WITHIN, ALSO, ANYWHERE, TEAM)}
    assert len(probes) == 4
    assert all(is_probe(name) for name in probes)
    assert not is_probe("web")
