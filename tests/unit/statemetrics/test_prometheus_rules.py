"""The rules of integrations/prometheus query existing series, and give instructions."""

import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from flotilla_common.api.kinds import catalogue
from flotilla_statemetrics.app import KINDS
from tests.testkit.documents import Json
from tests.unit.chart.test_monitoring import LABELS, parts

FILE = Path(__file__).parents[3] / "integrations" / "prometheus" / "rules.yaml"
GROUPS = yaml.safe_load(FILE.read_text(encoding="utf-8"))["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
RECORDS = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
FURTHER = {"condition", "status", "revision", "type", "subset"}
"""Labels that series have besides those of their object."""

KRUISE = {
    family.name: {*kind.labels, *FURTHER, *(["namespace"] if kind.resource.namespaced else [])}
    for kind in KINDS
    for family in kind.families
}


def known(name: str) -> set[str]:
    """Return the labels of a series. Raises KeyError for one that does not exist."""
    if name in RECORDS:
        return set().union(*(known(one.name) for one in selectors(RECORDS[name])))
    return KRUISE[name] if name.startswith("kruise_") else LABELS[name]


def selectors(query: str) -> list[Any]:
    return [part for part in parts(query) if isinstance(part, promql_parser.VectorSelector)]


def joined(part: Any) -> list[str]:
    """Return the labels of `on (…)`."""
    modifier = getattr(part, "modifier", None)
    matching = getattr(modifier, "matching", None)
    return list(matching.labels) if matching is not None else []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_asks_for_series_that_there_are(rule: Json) -> None:
    found = parts(rule["expr"])
    series = selectors(rule["expr"])
    assert series
    labels = set().union(*(known(one.name) for one in series))
    matched = {matcher.name for one in series for matcher in one.matchers.matchers}
    grouped = {
        label
        for part in found
        if isinstance(part, promql_parser.AggregateExpr) and part.modifier
        for label in part.modifier.labels
    }
    on = {label for part in found if isinstance(part, promql_parser.BinaryExpr) for label in joined(part)}
    assert matched | grouped | on <= labels
    told = set(re.findall(r"\$labels\.(\w+)", str(rule.get("annotations", ""))))
    assert told <= (grouped or labels), "a label that the result does not have"


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_to_do(rule: Json) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["for"]
    assert rule["annotations"]["summary"]
    assert "flotilla explain" in rule["annotations"]["runbook"]


def test_names_are_unique() -> None:
    assert len({rule.get("alert") or rule["record"] for rule in RULES}) == len(RULES)


def test_kinds_and_states_are_those_of_the_code() -> None:
    kinds = {kind.resource.kind for kind in catalogue.KINDS}
    for rule in ALERTS:
        for one in selectors(rule["expr"]):
            for matcher in one.matchers.matchers:
                values = set(matcher.value.split("|"))
                assert matcher.name != "kind" or values <= kinds
                assert matcher.name != "state" or values <= {"stuck", "held", "waiting"}


def test_reasons_are_those_that_are_documented() -> None:
    """A code that is misspelt would never be met."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (FILE.parents[2] / "docs").glob("*.md"))
    matchers = [one for rule in ALERTS for each in selectors(rule["expr"]) for one in each.matchers.matchers]
    codes = {code for one in matchers if one.name == "reason" for code in one.value.split("|") if "*" not in code}
    assert codes
    assert {code for code in codes if f"`{code}`" not in pages} == set()
