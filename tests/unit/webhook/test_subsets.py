"""The changes of a pod by its subset, and their order (workloadspread.md §5.4)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.workloadspread.types import DELETION_COST, MATCHED
from tests.testkit.documents import Json
from tests.unit.webhook.spread_world import World, pod, spread, subset

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(key: str, *values: str, members: str = "matchExpressions") -> Json:
    return {members: [{"key": key, "operator": "In", "values": list(values)}]}


def weighted(weight: int, key: str) -> Json:
    return {"weight": weight, "preference": term(key, "x")}


async def injected(of: Json, spec: Json | None = None, **metadata: Any) -> Json:
    """Return the stored pod of a workload with this one subset."""
    document = pod("p", **metadata)
    document["spec"] |= spec or {}
    return await (await World(spread(of)).watch()).create(document)


async def affinity_of(of: Json, node_affinity: Json | None = None) -> Json:
    spec = {"affinity": {"nodeAffinity": node_affinity}} if node_affinity is not None else {}
    found: Json = (await injected(of, spec))["spec"]["affinity"]["nodeAffinity"]
    return found


async def test_a_subset_without_anything_leaves_its_mark_and_an_empty_affinity() -> None:
    found = await injected(subset("a"))
    expected = pod("p", annotations={MATCHED: '{"name":"ws","subset":"a"}', DELETION_COST: "100"})
    expected["spec"]["affinity"] = {"nodeAffinity": {}}
    assert found == expected


async def test_the_cost_of_a_pod_by_the_order_of_subsets() -> None:
    """It is written as by the controller (§8.4), which then has nothing left to do."""
    world = await World(spread(subset("a", 1), subset("b", 1), subset("c"))).watch()
    found = [(await world.create(pod(f"p{number}")))["metadata"]["annotations"] for number in range(3)]
    assert [one[DELETION_COST] for one in found] == ["300", "200", "100"]


async def test_pods_whose_controller_goes_by_no_cost() -> None:
    world = await World(spread(subset("a"), target=("batch/v1", "Job", "web"))).watch()
    found = await world.create(pod("p", ("batch/v1", "Job", "web")))
    assert list(found["metadata"]["annotations"]) == [MATCHED]


async def test_an_affinity_that_is_there_stays() -> None:
    found = await injected(subset("a"), {"affinity": {"podAffinity": {"x": 1}, "nodeAffinity": None}})
    assert found["spec"]["affinity"] == {"podAffinity": {"x": 1}, "nodeAffinity": {}}


async def test_tolerations_are_appended() -> None:
    own, more = {"key": "own", "operator": "Exists"}, {"key": "pool", "operator": "Exists", "effect": "NoSchedule"}
    assert (await injected(subset("a", tolerations=[more])))["spec"]["tolerations"] == [more]
    found = await injected(subset("a", tolerations=[more]), {"tolerations": [own]})
    assert found["spec"]["tolerations"] == [own, more]


async def test_preferred_terms_are_appended() -> None:
    found = await affinity_of(
        subset("a", preferredNodeSelector=[weighted(30, "zone")]), {PREFERRED: [weighted(1, "own")]}
    )
    assert found == {PREFERRED: [weighted(1, "own"), weighted(30, "zone")]}


async def test_a_required_term() -> None:
    of = subset("a", requiredNodeSelector=term("zone", "x"))
    assert await affinity_of(of) == {REQUIRED: {"nodeSelectorTerms": [term("zone", "x")]}}


async def test_every_required_term_of_the_pod_is_extended() -> None:
    """W21."""
    fields = term("metadata.name", "n", members="matchFields")
    of = subset("a", requiredNodeSelector=term("zone", "x") | fields)
    found = await affinity_of(of, {REQUIRED: {"nodeSelectorTerms": [term("disk", "ssd"), fields]}})
    both = term("disk", "ssd")["matchExpressions"] + term("zone", "x")["matchExpressions"]
    assert found[REQUIRED]["nodeSelectorTerms"] == [
        {"matchExpressions": both, "matchFields": fields["matchFields"]},
        {"matchExpressions": term("zone", "x")["matchExpressions"], "matchFields": fields["matchFields"] * 2},
    ]


async def test_the_patch_beats_what_came_before() -> None:
    patch = {
        "metadata": {"labels": {"subset": "a"}, "annotations": {MATCHED: "forged", "other": "x"}},
        "spec": {
            "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term("zone", "patched")]}}},
            "tolerations": [{"key": "patched", "operator": "Exists"}],
            "containers": [{"name": "main", "env": [{"name": "SUBSET", "value": "a"}]}],
        },
    }
    of = subset("a", requiredNodeSelector=term("zone", "x"), tolerations=[{"operator": "Exists"}], patch=patch)
    found = await injected(of, labels={"app": "web"})
    assert found["metadata"]["labels"] == {"app": "web", "subset": "a"}
    assert found["metadata"]["annotations"] == {
        MATCHED: '{"name":"ws","subset":"a"}',
        DELETION_COST: "100",
        "other": "x",
    }
    spec = found["spec"]
    assert spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [term("zone", "patched")]
    assert spec["tolerations"] == [{"key": "patched", "operator": "Exists"}]
    assert spec["containers"] == [{"name": "main", "image": "nginx", "env": [{"name": "SUBSET", "value": "a"}]}]


async def test_a_null_in_the_patch_removes_a_member() -> None:
    patch = {"metadata": {"labels": {"gone": None}}, "spec": {"nodeSelector": None, "absent": None}}
    found = await injected(
        subset("a", patch=patch), {"nodeSelector": {"zone": "y"}}, labels={"gone": "x", "app": "web"}
    )
    assert found["metadata"]["labels"] == {"app": "web"}
    assert not {"nodeSelector", "absent"} & found["spec"].keys()


async def test_a_directive_in_one_element_replaces_the_list() -> None:
    side = {"name": "side", "image": "x"}
    patch = {"spec": {"containers": [side, {"name": "main", "$patch": "replace"}], "schedulingGates": [{"name": "b"}]}}
    found = await injected(subset("a", patch=patch), {"schedulingGates": [{"name": "a"}]})
    assert found["spec"]["containers"] == [side]
    assert sorted(one["name"] for one in found["spec"]["schedulingGates"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "patched", "expected"),
    [
        pytest.param("normal", "batch-low", None, id="W20: another class"),
        pytest.param("normal", "normal", 1000, id="the same class"),
        pytest.param("normal", "", 1000, id="none in the patch"),
    ],
)
async def test_the_priority_is_that_of_the_class(given: str, patched: str, expected: int | None) -> None:
    patch = {"spec": {"priorityClassName": patched} if patched else {"schedulerName": "x"}}
    found = await injected(subset("a", patch=patch), {"priorityClassName": given, "priority": 1000})
    assert found["spec"]["priorityClassName"] == (patched or given)
    assert found["spec"].get("priority") == expected


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"spec": {"containers": [{"image": "x"}]}}, id="an element without its key"),
        pytest.param({"spec": None}, id="no spec"),
        pytest.param({"$patch": "delete"}, id="no pod"),
        pytest.param([1], id="no object"),
        pytest.param("text", id="a text"),
        pytest.param({"spec": {"$patch": "improve"}}, id="a directive that is none"),
        pytest.param({"spec": {"$retainKeys": 5}}, id="keys to keep that are none"),
        pytest.param({"metadata": {"$deleteFromPrimitiveList/finalizers": 3}}, id="values to remove that are none"),
        pytest.param({"metadata": {"finalizers": [{}]}}, id="objects among plain values"),
    ],
)
async def test_a_patch_that_cannot_be_applied_refuses_the_pod(patch: object) -> None:
    document = pod("p", finalizers=["x"])
    answer = await (await World(spread(subset("a", patch=patch))).watch()).admission(document)
    assert (answer.code, answer.allowed) == (500, False)


async def test_what_is_nested_too_deeply_refuses_the_pod() -> None:
    deep: Json = {}
    for _ in range(200):
        deep = {"x": deep}
    answer = await (await World(spread(subset("a", patch={"metadata": deep}))).watch()).admission(pod("p"))
    assert answer.code == 500
    assert "nested more than 100 levels deep" in answer.message


async def test_a_pod_whose_patch_cannot_be_applied_takes_no_place() -> None:
    """It would hold the place until its timeout, and others would go to later subsets."""
    broken = {"spec": {"containers": [{"image": "no name"}]}}
    world = await World(spread(subset("a", 1, patch=broken), subset("b"))).watch()
    answer = await world.admission(pod("p"))
    assert (answer.allowed, answer.code) == (False, 500)
    assert "the patch of subset a cannot be applied" in answer.message
    assert world.book() == {}
