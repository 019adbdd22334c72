"""New pods get the name of the budget that protects them (podunavailablebudget.md §5.1)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import (
    LEGACY_RELATED_BUDGET,
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
)
from flotilla_common.api.resources import DEPLOYMENT, REPLICA_SET
from flotilla_common.kube.interface import ApiError
from tests.testkit.documents import Json
from tests.unit.webhook.budget_world import NAMESPACE, World, budget

BOTH = (RELATED_BUDGET, LEGACY_RELATED_BUDGET)


def newcomer(*, labels: Json | None = None, of: tuple[str, str, str] | None = None) -> Json:
    metadata: Json = {"generateName": "web-", "labels": {"app": "web"} if labels is None else labels}
    if of is not None:
        version, kind, name = of
        metadata["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": name, "uid": f"u-{name}", "controller": True}
        ]
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}


def targeting(version: str, kind: str, name: str = "web", **more: Any) -> Json:
    return budget(spec={"selector": None, "targetRef": {"apiVersion": version, "kind": kind, "name": name}}, **more)


def told(pod: Json) -> str:
    annotations = pod["metadata"].get("annotations", {})
    assert annotations.get(BOTH[0]) == annotations.get(BOTH[1])
    return annotations.get(BOTH[0], "")


CLONE_SET = ("apps.kruise.io/v1alpha1", "CloneSet", "web")
OF_REPLICA_SET = ("apps/v1", "ReplicaSet", "web-6d4")


@pytest.mark.parametrize(
    ("budgets", "pod", "expected"),
    [
        ([budget()], newcomer(), "pub"),
        ([budget()], newcomer(labels={}), ""),
        ([budget(spec={"selector": {}})], newcomer(), ""),
        ([targeting("apps.kruise.io/v1beta1", "CloneSet")], newcomer(of=CLONE_SET), "pub"),
        ([targeting("apps.kruise.io/v1beta1", "CloneSet", "other")], newcomer(of=CLONE_SET), ""),
        ([targeting("apps.kruise.io/v1beta1", "CloneSet")], newcomer(), ""),
        ([targeting("example.test/v1", "Game")], newcomer(of=("example.test/v2", "Game", "web")), "pub"),
        ([targeting("apps/v1", "Deployment")], newcomer(of=OF_REPLICA_SET), "pub"),
        ([targeting("apps/v1", "Deployment", "other")], newcomer(of=OF_REPLICA_SET), ""),
        ([targeting("apps/v1", "ReplicaSet", "web-6d4")], newcomer(of=OF_REPLICA_SET), "pub"),
        ([budget(name="b"), budget(name="a")], newcomer(), "a"),
        (
            [budget(name="a", spec={"selector": {"matchExpressions": [{"key": "-", "operator": "In"}]}}), budget()],
            newcomer(),
            "pub",
        ),
    ],
    ids=[
        "labels",
        "other labels",
        "an empty selector",
        "target in another version",
        "another target",
        "no controller",
        "a custom workload",
        "a Deployment",
        "another Deployment",
        "a ReplicaSet",
        "the first by name",
        "one that cannot be read is passed over",
    ],
)
async def test_which_budget(budgets: list[Json], pod: Json, expected: str) -> None:
    world = await World(*budgets).watch()
    owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}]
    world.cluster.put(REPLICA_SET, {"metadata": {"name": "web-6d4", "namespace": NAMESPACE, "ownerReferences": owners}})
    world.cluster.put(DEPLOYMENT, {"metadata": {"name": "web", "namespace": NAMESPACE}})
    assert told(await world.create(pod)) == expected


async def test_budgets_of_other_namespaces_are_not_its_own() -> None:
    world = await World(budget()).watch()
    assert told(await world.create(newcomer(), namespace="other")) == ""


async def test_a_budget_that_another_replica_has_just_admitted() -> None:
    """Ask the apiserver once in a while: the watch of this replica has not shown the budget yet."""
    world = await World().watch()
    world.cluster.put(POD_UNAVAILABLE_BUDGET, budget())
    assert told(await world.create(newcomer())) == "pub"
    for _ in range(3):
        assert told(await world.create(newcomer(labels={}))) == ""
    assert world.cluster.lists.count(POD_UNAVAILABLE_BUDGET.plural) == 1


async def test_budgets_that_cannot_be_read_stop_no_pod() -> None:
    world = await World().watch()
    world.cluster.fail_lists = ApiError(503, "", "busy")
    assert told(await world.create(newcomer())) == ""


async def test_an_owner_that_cannot_be_read_stops_no_pod() -> None:
    world = await World(targeting("apps/v1", "Deployment"), budget(name="z")).watch()

    async def get(*_: Any) -> bytes:
        raise ApiError(503, "", "busy")

    world.cluster.get = get  # type: ignore[method-assign]
    assert told(await world.create(newcomer(of=OF_REPLICA_SET))) == "z"


async def test_without_the_gates_nothing_is_told() -> None:
    world = await World(budget(), gates="PodUnavailableBudgetDeleteGate=false").watch()
    assert told(await world.create(newcomer())) == ""
    assert await world.annotation.rules() == []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (budget(), 'object.metadata.labels["app"] == "web"'),
        (targeting("apps.kruise.io/v1alpha1", "CloneSet"), 'r.kind == "CloneSet"'),
        (targeting("apps/v1", "Deployment"), 'r.kind == "ReplicaSet"'),
    ],
)
async def test_rules(document: Json, expected: str) -> None:
    world = await World(document).watch()
    (rule,) = await world.annotation.rules()
    assert rule.namespace == NAMESPACE
    assert expected in rule.expression
    assert await world.annotation.rules_of(document, NAMESPACE) == [rule]


async def test_a_budget_for_nobody_needs_no_rule() -> None:
    world = await World(budget(spec={"selector": {}})).watch()
    assert await world.annotation.rules() == []
