"""Alerts and dashboards query existing metrics, in valid PromQL."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from flotilla_common import service
from flotilla_common.bus import nats
from flotilla_common.control import metrics as control
from flotilla_common.kube import client
from flotilla_common.mirror import mirror
from flotilla_nodeagent import metrics as nodeagent
from flotilla_statemetrics.app import KINDS
from flotilla_watcher import metrics as watcher
from flotilla_webhook.metrics import process_metrics
from tests.testkit.documents import Json
from tests.unit.docs.test_docs import metric_names

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "helm" / "flotilla" / "monitoring"
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
OF_TARGETS = {"job", "component", "le"}
"""Labels that scraping adds, and that of histograms."""
OF_PROMETHEUS = {"up"}

ALERTS = [
    rule
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
DASHBOARDS = {
    path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted((MONITORING / "dashboards").iterdir())
}


def queries() -> Iterator[tuple[str, str]]:
    """Yield every query with its place."""
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for name, board in DASHBOARDS.items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield f"{name}: {panel['title']} {target['refId']}", target["expr"].replace("$__rate_interval", "5m")


def documented() -> dict[str, set[str]]:
    """Return the labels of each metric, from the table in docs/operations.md."""
    found: dict[str, set[str]] = {}
    for names, labels in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([\w, ]*?) ?\| ", OPERATIONS, re.MULTILINE):
        found |= {name: set(re.findall(r"\w+", labels)) for name in re.findall(r"\w+", names)}
    return found


def parts(query: str) -> list[Any]:
    found: list[Any] = []
    promql_parser.walk(promql_parser.parse(query), found.append)
    return found


def base(name: str) -> str:
    """Return the metric of a histogram's series."""
    return re.sub(r"_(bucket|sum|count)$", "", name)


QUERIES = dict(queries())
OF_OBJECTS = {
    family.name: {*kind.labels, *(["namespace"] if kind.resource.namespaced else [])}
    for kind in KINDS
    for family in kind.families
}
"""Metrics of the service that serves metrics of objects."""
LABELS = documented() | OF_OBJECTS
EXPOSED = metric_names() | OF_OBJECTS.keys()


@pytest.mark.parametrize("where", QUERIES)
def test_a_query_asks_for_what_there_is(where: str) -> None:
    found = parts(QUERIES[where])
    selectors = [part for part in found if isinstance(part, promql_parser.VectorSelector)]
    names = {base(str(selector.name)) for selector in selectors}
    assert names
    assert names - OF_PROMETHEUS <= EXPOSED & LABELS.keys()
    known = OF_TARGETS.union(*(LABELS.get(name, set()) for name in names))
    matched = {matcher.name for selector in selectors for matcher in selector.matchers.matchers}
    grouped = {
        label
        for part in found
        if isinstance(part, promql_parser.AggregateExpr) and part.modifier
        for label in part.modifier.labels
    }
    assert matched | grouped <= known


def test_labels_are_those_of_the_code() -> None:
    """The table in docs/operations.md, against which queries are checked, agrees with the metrics themselves."""
    modules = (control, mirror, nats, service, client, watcher, nodeagent)
    metrics = [one for module in modules for one in vars(module).values() if isinstance(one, MetricWrapperBase)]
    metrics += [one for one in vars(process_metrics()).values() if isinstance(one, MetricWrapperBase)]
    exposed = {name: set(one._labelnames) for one in metrics for name in (one._name, f"{one._name}_total")}
    known = exposed.keys() & LABELS.keys()
    assert len(known) > 35
    assert {name: LABELS[name] for name in known} == {name: exposed[name] for name in known}


def test_names_are_those_of_different_things() -> None:
    assert len(QUERIES) == len(list(queries())) > 50
    assert len({board["uid"] for board in DASHBOARDS.values()}) == len(DASHBOARDS) == 5


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_to_do(rule: Json) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["for"]
    assert rule["annotations"]["summary"]
    assert len(rule["annotations"]["description"]) > 60
    labels = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    grouped = {
        label
        for part in parts(rule["expr"])
        if isinstance(part, promql_parser.AggregateExpr) and part.modifier
        for label in part.modifier.labels
    }
    assert labels <= grouped, "a label that the result does not have"


@pytest.mark.parametrize("board", DASHBOARDS.values(), ids=DASHBOARDS)
def test_panels_lie_side_by_side(board: Json) -> None:
    taken = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]}
    assert len(taken) == len(board["panels"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_what_users_ask_about_has_a_panel() -> None:
    titles = " ".join(panel["title"].lower() for board in DASHBOARDS.values() for panel in board["panels"])
    asked = (
        "pods written",
        "writes per",
        "lag",
        "queue",
        "time to an answer",
        "on the bus",
        "budget refused",
        "rounds of probes",
    )
    assert [word for word in asked if word not in titles] == []
