"""The fleet page."""

from typing import Any

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.resources import DEPLOYMENT
from flotilla_console.blocks.types import Bar, Form, Paragraph, Table
from flotilla_console.pages.fleet import build
from tests.testkit.tables import cases
from tests.unit.console.model.worlds import Only, World, column, table, texts

_STUCK = {"state": "stuck", "code": "ErrImagePull", "message": "image nginx:nope cannot be pulled"}


def _world() -> World:
    world = World()
    world.clone_set("fine", labels={"team": "a"})
    world.clone_set("busy", image="redis:7", readyReplicas=1)
    world.clone_set("stuck", labels={"team": "b"})
    world.clone_set("stuck-too", "other")
    world.explain(CLONE_SET, "stuck", _STUCK)
    return world


def _names(world: World, allowed: Any = None, **query: str) -> list[str]:
    return column(table(build(world.request(allowed, query=query)), "workloads"), "name")


def test_blocked_workloads_come_first() -> None:
    assert _names(_world()) == ["stuck", "busy", "stuck-too", "fine"]


def test_blocked_workloads_are_grouped_by_reason() -> None:
    reasons = table(build(_world().request()), "reasons")
    assert column(reasons, "reason") == ["ErrImagePull"]
    assert "nginx:nope" in texts(reasons)


@pytest.mark.parametrize(
    ("query", "names"),
    cases(
        {
            "name": ({"q": "stuck"}, ["stuck", "stuck-too"]),
            "image": ({"q": "redis"}, ["busy"]),
            "label": ({"q": "team=a"}, ["fine"]),
            "another value": ({"q": "team=c"}, []),
            "all words": ({"q": "stuck team=b"}, ["stuck"]),
            "namespace": ({"namespace": "other"}, ["stuck-too"]),
            "namespace as a word": ({"q": "other"}, ["stuck-too"]),
            "state": ({"state": "blocked"}, ["stuck"]),
            "kind": ({"kind": "apps_kruise_io.clonesets", "sort": "name"}, ["busy", "fine", "stuck", "stuck-too"]),
            "another kind": ({"kind": "apps.deployments"}, []),
            "sorted": ({"sort": "-name"}, ["stuck-too", "stuck", "fine", "busy"]),
            "sorted by no column": ({"sort": "x"}, ["stuck", "busy", "stuck-too", "fine"]),
            "an offset that is no number": ({"offset": "x"}, ["stuck", "busy", "stuck-too", "fine"]),
            "an offset beyond the end": ({"offset": "5000"}, ["stuck", "busy", "stuck-too", "fine"]),
        }
    ),
)
def test_search(query: dict[str, str], names: list[str]) -> None:
    assert sorted(_names(_world(), **query)) == sorted(names)
    if "sort" in query and query["sort"] != "x":
        assert _names(_world(), **query) == names


def test_counts_rows_choices_and_search_have_only_what_may_be_seen() -> None:
    world = _world()
    page = build(world.request(Only(clonesets=["other"]), query={"q": "stuck"}))
    assert column(table(page, "workloads"), "name") == ["stuck-too"]
    assert table(page, "workloads").total == 1
    assert not [block for block in page.blocks if isinstance(block, Table) and block.id == "reasons"]
    assert "shop" not in texts(page)
    assert "1 workload" in texts(page)


def test_the_form_keeps_the_search() -> None:
    form = next(
        block
        for block in build(_world().request(query={"q": "a  b", "namespace": "shop"})).blocks
        if isinstance(block, Form)
    )
    assert {field.name: field.value for field in form.fields} == {
        "q": "a b",
        "namespace": "shop",
        "kind": "",
        "state": "",
    }


def test_windows() -> None:
    world = World()
    for number in range(250):
        world.clone_set(f"web-{number:03}")
    found = table(build(world.request(query={"offset": "100", "sort": "name"})), "workloads")
    assert (found.total, found.offset, len(found.rows), column(found, "name")[0]) == (250, 100, 100, "web-100")


def test_links_of_counts_keep_the_search() -> None:
    page = build(_world().request(query={"q": "stuck", "offset": "100", "evil": "x"}))
    totals = next(block for block in page.blocks if isinstance(block, Paragraph))
    assert "/?q=stuck&state=blocked" in texts(totals)
    assert "evil" not in texts(page)


def test_objects_that_are_no_workloads_are_listed_on_request() -> None:
    world = World()
    world.put(POD_UNAVAILABLE_BUDGET, "web")
    assert _names(world) == []
    assert _names(world, kind="policy_kruise_io.podunavailablebudgets") == ["web"]


def test_bars_never_exceed_their_whole() -> None:
    world = World()
    world.put(
        DEPLOYMENT, "web", spec={"replicas": 2}, status={"observedGeneration": 1, "replicas": 1, "readyReplicas": 9}
    )
    bar = table(build(world.request()), "workloads").rows[0].cells[4][0]
    assert isinstance(bar, Bar)
    assert sum(part.count for part in bar.parts) == bar.total == 2


def test_unreadable_objects_are_named() -> None:
    world = World()
    world.add(CLONE_SET, {"metadata": {"name": "odd", "namespace": "shop", "labels": 7}})
    assert "CloneSet shop/odd" in texts(build(world.request()))
    assert "odd" not in texts(build(world.request(Only())))
