"""The page as a whole: labels, bounds, and objects that are hostile."""

import pytest

from flotilla_cli.controllers import controller_of
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.table import Table
from flotilla_statemetrics.app import KINDS, RESOURCES
from flotilla_statemetrics.exposition import MOST_CHARACTERS, MOST_SERIES, text_of
from flotilla_statemetrics.families import MOST_LABELS, AnyKind, prometheus_labels
from flotilla_statemetrics.kinds.clonesets import CLONE_SETS
from flotilla_statemetrics.kinds.daemonsets import DAEMON_SETS
from flotilla_statemetrics.kinds.workloadspreads import WORKLOAD_SPREADS
from tests.support.hostile.amount import amount
from tests.support.hostile.stored import Stored
from tests.support.timing import measured
from tests.unit.statemetrics.scraped import read, scraped

MOST_SECONDS = 1.0
MOST_BYTES = 400_000
"""Limit for one object: a hundred series of a few families, with truncated labels."""


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, {}),
        ({"app.kubernetes.io/name": "a"}, {"label_app_kubernetes_io_name": "a"}),
        ({"teamName": "a", "HTTPServer": "b"}, {"label_team_name": "a", "label_httpserver": "b"}),
        (
            {"a-b": "1", "a.b": "2", "a/c": "3"},
            {"label_a_b_conflict1": "1", "label_a_b_conflict2": "2", "label_a_c": "3"},
        ),
        (
            {"a-b": "1", "a.b": "2", "a_b_conflict1": "3"},
            {"label_a_b_conflict2": "1", "label_a_b_conflict3": "2", "label_a_b_conflict1": "3"},
        ),
        ({"0": "zero"}, {"label_0": "zero"}),
    ],
)
def test_labels_get_names_that_prometheus_takes(labels: dict[str, str], expected: dict[str, str]) -> None:
    assert dict(prometheus_labels(labels)) == expected


def test_thousands_of_labels_cost_as_much_as_a_hundred() -> None:
    found = list(prometheus_labels({f"label-{number:05}": "x" for number in range(5000)}))
    assert len(found) == MOST_LABELS
    assert found[0] == ("label_label_00000", "x")


def test_the_page_keeps_every_character() -> None:
    labels = {"name": 'a"b', "namespace": "back\\slash", "labels": {"x": "two\nlines", "y": "ä€"}}
    found = scraped(CLONE_SETS, {"metadata": labels})
    assert {"namespace": "back\\slash", "cloneset": 'a"b', "label_x": "two\nlines", "label_y": "ä€"} in [
        dict(labels) for name, labels in found if name == "kruise_cloneset_labels"
    ]


def test_what_no_encoding_has_costs_its_own_object_alone() -> None:
    strange = CLONE_SETS.type(metadata=ObjectMeta(name="\ud800", namespace="shop"))
    page = text_of([(CLONE_SETS, [strange, CLONE_SETS.type(metadata=ObjectMeta(name="web", namespace="shop"))])])
    assert b'kruise_cloneset_spec_replicas{namespace="shop",cloneset="web"} 1\n' in page


def test_an_object_has_so_many_series_and_no_more() -> None:
    subsets = [{"name": f"s{number}", "replicas": 1, "missingReplicas": 0} for number in range(3000)]
    twice = [{"name": "x" * 5000, "replicas": number} for number in range(3)]
    many = {"metadata": {"name": "many"}, "status": {"subsetStatuses": subsets}}
    same = {"metadata": {"name": "same"}, "status": {"subsetStatuses": twice}}
    counted = [
        dict(labels) for name, labels in scraped(WORKLOAD_SPREADS, many, same) if name.endswith("subset_replicas")
    ]
    assert len([one for one in counted if one["workloadspread"] == "many"]) == MOST_SERIES
    assert [one["subset"] for one in counted if one["workloadspread"] == "same"] == ["x" * MOST_CHARACTERS]


def test_kinds_without_objects_are_described() -> None:
    page = text_of([(kind, []) for kind in KINDS]).decode()
    names = [family.name for kind in KINDS for family in kind.families]
    assert read(page) == {}
    assert [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")] == names
    assert len(set(names)) == len(names)


def test_objects_are_those_of_their_own_kind() -> None:
    found = scraped(DAEMON_SETS, {"metadata": {"name": "a", "namespace": "x"}}, {"metadata": {"name": "a"}})
    assert {dict(labels)["namespace"] for _, labels in found} == {"x", ""}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.labels[0])
def test_hostile_objects_cost_nobody_else_anything(kind: AnyKind) -> None:
    """For any stored object, the page can be parsed, and that of a good object beside it is complete."""
    good = kind.type(metadata=ObjectMeta(name="good", namespace="shop" if kind.resource.namespaced else ""))
    own = len([1 for line in text_of([(kind, [good])]).splitlines() if not line.startswith(b"#")])
    for seed in range(amount(40)):
        table: Table[object] = Table()
        ObjectDecoder(kind.resource, kind.type, table).take(Stored(seed).primary(controller_of(kind.resource)))
        with measured() as seconds:
            page = text_of([(kind, [*table, good])])
        assert seconds() < MOST_SECONDS, seed
        assert len(page) < MOST_BYTES, seed
        series = [dict(labels) for _, labels in read(page.decode())]
        assert len([one for one in series if one[kind.labels[0]] == "good"]) == own, seed


def test_each_resource_is_read_once() -> None:
    assert len(RESOURCES) == len(set(RESOURCES)) == 6
