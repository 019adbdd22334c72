"""The topology page: subsets, budgets, and additions to workloads."""

from typing import Any

import pytest

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WORKLOAD_SPREAD
from flotilla_common.api.resources import Resource
from flotilla_console.blocks.types import Bar, Form, Link, Table
from flotilla_console.model.resources import DISRUPTION_BUDGET
from flotilla_console.page import Page
from flotilla_console.pages.topology import build
from tests.testkit.tables import cases
from tests.unit.console.model.worlds import Only, World, column, owned_by, table, texts

_ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
_FULL = {"type": "Schedulable", "status": "False", "reason": "Full", "message": "no node of zone b is free"}


def _united(world: World) -> None:
    """Add a UnitedDeployment with three subsets: one ready, one without nodes, one that is leaving."""
    subsets: list[Json] = [
        {"name": "a", "replicas": 2, "nodeSelectorTerm": _ZONE, "tolerations": [{}]},
        {"name": "b", "minReplicas": 1, "maxReplicas": "50%"},
    ]
    statuses: list[Json] = [
        {"name": "a", "replicas": 2, "readyReplicas": 2, "partition": 1},
        {"name": "b", "replicas": 2, "readyReplicas": 1, "conditions": [_FULL]},
        {"name": "old", "replicas": 1, "readyReplicas": 1},
    ]
    spec = {"replicas": 5, "topology": {"subsets": subsets, "scheduleStrategy": {"type": "Adaptive"}}}
    world.put(UNITED_DEPLOYMENT, "shop", spec=spec, status={"subsetStatuses": statuses})
    owner = owned_by(UNITED_DEPLOYMENT, "shop")
    labels = {"apps.kruise.io/subset-name": "b"}
    spec = {"replicas": 2, "template": {"metadata": {"labels": {"app": "shop"}}}}
    status = {"observedGeneration": 1, "replicas": 1, "readyReplicas": 0}
    world.put(CLONE_SET, "shop-b", spec=spec, status=status, labels=labels, ownerReferences=[owner])
    world.pod("shop-b-1", owner=owned_by(CLONE_SET, "shop-b"), ready=False)


def _spread(world: World) -> None:
    """Add a WorkloadSpread over the CloneSet `web`, with a pod in one of its subsets."""
    world.clone_set()
    reference = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}
    subsets = [{"name": "fixed", "maxReplicas": 3, "requiredNodeSelector": _ZONE}, {"name": "rest", "patch": {"a": 1}}]
    statuses = [
        {"name": "fixed", "replicas": 1, "missingReplicas": 2},
        {"name": "rest", "replicas": 0, "missingReplicas": -1},
    ]
    spec = {"targetRef": reference, "subsets": subsets}
    world.put(WORKLOAD_SPREAD, "web", spec=spec, status={"subsetStatuses": statuses})
    world.pod("web-1", annotations={MATCHED: '{"Name": "web", "Subset": "fixed"}'})
    world.pod("web-2")


def _shown(world: World, allowed: Any = None, **query: str) -> Page:
    return build(world.request(allowed, query=query))


def _subsets(world: World, allowed: Any = None, **query: str) -> Table:
    return table(_shown(world, allowed, **query), "subsets")


def _bars(found: Table) -> list[tuple[str, dict[str, int]]]:
    spans = [span for row in found.rows for cell in row.cells for span in cell if isinstance(span, Bar)]
    return [(bar.label, {part.label: part.count for part in bar.parts}) for bar in spans]


def test_subsets_in_trouble_come_first() -> None:
    world = World()
    _united(world)
    found = _subsets(world)
    assert column(found, "subset") == ["b", "old", "a"]
    assert column(found, "state") == ["blocked", "leaving", "fine"]


def test_rules_of_a_united_deployment_are_in_words() -> None:
    world = World()
    _united(world)
    assert column(_subsets(world, sort="subset"), "rules") == [
        (
            "2 pods; on nodes with zone In (a, b); 1 toleration; pods without a node move after 30 s; "
            "keeps 1 pod on old revisions"
        ),
        "1 to 50% pods; pods without a node move after 30 s",
        "no longer in the spec",
    ]


def test_a_short_subset_says_why() -> None:
    world = World()
    _united(world)
    found = _subsets(world)
    assert column(found, "why")[0].startswith("no node of zone b is free, 1 pod to come")
    assert "shop-b-1 not ready" in column(found, "why")[0]
    assert _bars(found)[0] == ("0 of 2 ready", {"not ready": 1, "missing": 1})
    assert column(found, "where")[0] == "shop-b"


def test_pods_of_a_spread_are_counted_by_subset() -> None:
    world = World()
    _spread(world)
    found = _subsets(world)
    assert _bars(found) == [("1 of 1 ready, at most 3", {"ready": 1, "free": 2}), ("0 of 0 ready", {})]
    assert column(found, "rules") == [
        "at most 3 pods; on nodes with zone In (a, b)",
        "any number of pods; with a patch of the pods",
    ]
    assert column(found, "where") == ["web", "web"]


def test_pods_that_may_not_be_seen_are_counted_by_the_status_only() -> None:
    world = World()
    _spread(world)
    found = _subsets(world, Only(workloadspreads=("shop",)))
    assert _bars(found) == [("1 pods, at most 3", {"placed": 1, "free": 2}), ("0 pods", {})]
    assert column(found, "where") == ["", ""]


_TAKEN = {"web-1": "2025-12-31T23:59:50Z", "ahead/hook/1": "2025-12-31T23:59:50Z"}


def _budgets(world: World) -> None:
    """Add two budgets of ours and one of Kubernetes; two of the three protect the CloneSet `web`."""
    world.clone_set()
    world.clone_set("db")
    world.pod("web-1")
    reference = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web"}
    status = {"unavailableAllowed": 0, "currentAvailable": 2, "desiredAvailable": 2, "totalReplicas": 3}
    world.put(
        POD_UNAVAILABLE_BUDGET,
        "web",
        spec={"targetRef": reference, "maxUnavailable": "25%"},
        status=status | {"disruptedPods": _TAKEN, "unavailablePods": {"web-9": "soon"}},
    )
    world.put(
        POD_UNAVAILABLE_BUDGET,
        "gone",
        spec={"targetRef": reference | {"name": "gone"}, "minAvailable": 1},
        status={"totalReplicas": -1},
    )
    world.put(
        DISRUPTION_BUDGET,
        "all",
        spec={"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 2},
        status={"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3},
    )


def test_budgets_show_what_is_left_and_whom_they_protect() -> None:
    world = World()
    _budgets(world)
    found = table(_shown(world, show="budgets", sort="name"), "budgets")
    assert column(found, "name") == [
        "all PodDisruptionBudget",
        "gone PodUnavailableBudget",
        "web PodUnavailableBudget",
    ]
    assert column(found, "allowed") == ["1 more", "none: it counts no pods", "none left"]
    assert column(found, "limit") == ["minAvailable 2", "minAvailable 1", "maxUnavailable 25%"]
    assert column(found, "protects") == ["web", "CloneSet gone, which does not exist or may not be seen by you", "web"]
    assert column(found, "others") == ["PodUnavailableBudget web", "", "PodDisruptionBudget all"]
    assert column(found, "used")[2] == "web-9 (update), web-1 (deletion since ); 1 held for coming requests"


def test_a_budget_that_is_overdrawn_is_bad() -> None:
    world = World()
    status = {"unavailableAllowed": 0, "currentAvailable": 1, "desiredAvailable": 2, "totalReplicas": 3}
    world.put(POD_UNAVAILABLE_BUDGET, "web", status=status)
    row = table(_shown(world, show="budgets"), "budgets").rows[0]
    assert row.tone == "bad"


def test_names_of_pods_that_may_not_be_seen_are_left_out() -> None:
    world = World()
    _budgets(world)
    page = _shown(world, Only(podunavailablebudgets=("shop",)), show="budgets", sort="name")
    found = table(page, "budgets")
    assert column(found, "used") == ["", "2 pods; 1 held for coming requests"]
    assert column(found, "name") == ["gone PodUnavailableBudget", "web PodUnavailableBudget"]
    assert "web-1" not in texts(page)
    assert column(found, "others") == ["", ""]


def test_additions_show_their_progress() -> None:
    world = World()
    status = {"observedGeneration": 1, "matchedPods": 4, "updatedPods": 1, "readyPods": 3}
    world.put(SIDECAR_SET, "mesh", "", status=status)
    world.clone_set()
    found = table(_shown(world, show="additions"), "additions")
    assert column(found, "name") == ["mesh"]
    assert column(found, "updated") == ["1 of 4"]
    assert _bars(found) == [("3 of 4 pods ready", {"ready": 3, "not ready": 1})]


@pytest.mark.parametrize(
    ("query", "found"),
    cases(
        {
            "everything": ({}, ["b", "old", "a", "fixed", "rest"]),
            "kind": ({"kind": "WorkloadSpread"}, ["fixed", "rest"]),
            "name": ({"q": "web"}, ["fixed", "rest"]),
            "two words": ({"q": "sho we"}, ["fixed", "rest"]),
            "namespace": ({"namespace": "other"}, []),
            "sorted": ({"sort": "-subset"}, ["rest", "old", "fixed", "b", "a"]),
            "sorted by no column": ({"sort": "x"}, ["b", "old", "a", "fixed", "rest"]),
            "an unknown view": ({"show": "x"}, ["b", "old", "a", "fixed", "rest"]),
        }
    ),
)
def test_subsets_are_searched_and_sorted(query: dict[str, str], found: list[str]) -> None:
    world = World()
    _united(world)
    _spread(world)
    assert column(_subsets(world, **query), "subset") == found


def test_a_window_has_at_most_a_hundred_rows() -> None:
    world = World()
    for number in range(150):
        world.put(POD_UNAVAILABLE_BUDGET, f"web-{number:03}")
    found = table(_shown(world, show="budgets", sort="name", offset="100"), "budgets")
    assert (found.total, found.offset, len(found.rows)) == (150, 100, 50)


def test_views_keep_the_search() -> None:
    page = _shown(World(), q="a b", namespace="shop", sort="state")
    assert [span.href for span in _links(page)] == [
        "/topology?show=budgets&q=a+b&namespace=shop",
        "/topology?show=additions&q=a+b&namespace=shop",
    ]
    assert isinstance(page.blocks[0], Form)


def _links(page: Page) -> list[Link]:
    return [span for block in page.blocks for span in getattr(block, "spans", ()) if isinstance(span, Link)]


def test_nothing_is_shown_without_rights() -> None:
    world = World()
    _united(world)
    _spread(world)
    _budgets(world)
    for view in ("subsets", "budgets", "additions"):
        page = _shown(world, Only(), show=view)
        assert table(page, view).total == 0
        assert "(1)" not in texts(page)
        assert "shop" not in texts(page)


_WRONG: tuple[Any, ...] = (None, 7, "x", [], {}, [None], {"a": None}, [{"name": 3}], 10**30, -1, True)


@pytest.mark.parametrize("resource", [UNITED_DEPLOYMENT, WORKLOAD_SPREAD, POD_UNAVAILABLE_BUDGET, DISRUPTION_BUDGET])
def test_members_of_wrong_types_harm_only_their_object(resource: Resource) -> None:
    members = (
        *("replicas", "topology", "subsets", "subsetStatuses", "scheduleStrategy", "targetRef", "selector"),
        *("maxUnavailable", "disruptedPods", "unavailablePods", "unavailableAllowed", "totalReplicas"),
        *("conditions", "nodeSelectorTerm", "preferredNodeSelector", "matchExpressions", "values", "currentAvailable"),
        *("disruptionsAllowed", "missingReplicas", "partition", "readyReplicas", "name", "maxReplicas"),
    )
    for wrong in _WRONG:
        flat = dict.fromkeys(members, wrong)
        nested = {one: [flat] if one.startswith("subset") else flat for one in members}
        for document in (wrong, flat, nested, {"subsets": [flat | {"name": "a"}], "topology": nested}):
            world = World()
            _united(world)
            world.put(resource, "odd", spec=document, status=document)
            for view in ("subsets", "budgets"):
                texts(_shown(world, show=view))
            assert "shop" in texts(_subsets(world))
