"""The subsets of pods that existed before the WorkloadSpread (workloadspread.md §8.3 and §11)."""

import msgspec
import pytest

from flotilla_common.api.kinds.workloadspread.types import MATCHED
from flotilla_common.control.plan import Patch, Plan
from tests.testkit.documents import Json
from tests.testkit.tables import cases
from tests.unit.workloadspread.build import COST, annotated, at, costs, entries, node, planned, pod, spread, subset


def zone(name: str) -> Json:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [name]}]}


def adopted(made: Plan) -> dict[str, str]:
    """Return the written subsets by name of the pod."""
    return {name: msgspec.json.decode(text)["subset"] for name, text in annotated(made, MATCHED).items()}


NODES = [node("n-a", zone="a"), node("n-b", zone="b")]
PLACES = (subset("a", 3, requiredNodeSelector=zone("a")), subset("b", requiredNodeSelector=zone("b")))


def test_required_terms_decide() -> None:
    """X1: the pods beyond the limit go first."""
    pods = [pod(f"p{number}", node="n-a") for number in range(5)]
    made = planned(spread(*PLACES), pods, nodes=NODES)
    assert adopted(made) == dict.fromkeys((f"p{number}" for number in range(5)), "a")
    assert sorted(costs(made).values()) == [-100, -100, 200, 200, 200]
    assert [(one["replicas"], one["missingReplicas"]) for one in entries(made)] == [(5, 0), (0, -1)]


def test_the_mark_of_another_one_is_overwritten() -> None:
    """X2."""
    other = {MATCHED: '{"name":"other","subset":"b"}'}
    assert adopted(planned(spread(*PLACES), [pod("p", node="n-a", annotations=other)], nodes=NODES)) == {"p": "a"}


def test_its_own_mark_stays_even_where_its_node_does_not_fit() -> None:
    made = planned(spread(*PLACES), [pod("p", "b", node="n-a")], nodes=NODES)
    assert (adopted(made), [one["replicas"] for one in entries(made)]) == ({}, [0, 1])


def test_the_mark_is_read_in_any_case() -> None:
    mark = {MATCHED: '{"Name":"ws","Subset":"b"}'}
    assert [one["replicas"] for one in entries(planned(spread(*PLACES), [pod("p", annotations=mark)]))] == [0, 1]


def preferring(**weights: int) -> list[Json]:
    return [{"weight": weight, "preference": zone(name)} for name, weight in weights.items()]


def test_preferences_are_weighed() -> None:
    """X3."""
    places = (
        subset("a", preferredNodeSelector=preferring(a=30, b=5)),
        subset("b", preferredNodeSelector=preferring(a=5, b=40)),
    )
    made = planned(spread(*places), [pod("p", node="n-b"), pod("q", node="n-a")], nodes=NODES)
    assert adopted(made) == {"p": "b", "q": "a"}


def test_a_subset_with_room_is_preferred() -> None:
    """X4."""
    made = planned(spread(subset("a", 1), subset("b")), [pod("p", node="n-a"), pod("q", node="n-a")], nodes=NODES)
    assert adopted(made) == {"p": "a", "q": "b"}


@pytest.mark.parametrize("name", ["", "gone"])
def test_a_pod_without_a_node_that_is_known_waits(name: str) -> None:
    """X5."""
    made = planned(spread(*PLACES), [pod("p", node=name, phase="Pending")], nodes=NODES, replicas=1)
    assert (adopted(made), costs(made)) == ({}, {"p": -300})
    assert [reason.code for reason in made.reasons] == ["PodsWithoutSubset"]


FULL = (subset("a", 2, requiredNodeSelector=zone("a")),)
OTHER = {MATCHED: '{"name":"other","subset":"a"}'}
LEFT_OUT = cases(
    [
        ("younger", FULL, at(-9), {}, True),
        ("of the same second, in which the webhook lets none come", FULL, at(-10), {}, False),
        ("older", FULL, at(-11), {}, False),
        ("a mark that says nothing", FULL, at(-9), {MATCHED: "{"}, True),
        ("marked for another one", FULL, at(-9), OTHER, False),
        ("some subset takes any number", (*FULL, subset("b", requiredNodeSelector=zone("b"))), at(-9), {}, False),
        ("shares of the whole", (subset("a", "100%"),), at(-9), {}, False),
    ]
)


@pytest.mark.parametrize(("subsets", "made_at", "annotations", "alone"), LEFT_OUT)
def test_a_pod_that_no_subset_had_room_for_is_left_alone(
    subsets: tuple[Json, ...], made_at: str, annotations: Json, alone: bool
) -> None:
    """W2 and W17: it is not counted, and nothing is written about it, though its node fits."""
    extra = pod("p3", node="n-a", annotations=annotations, creationTimestamp=made_at)
    document = spread(*subsets, creationTimestamp=at(-10))
    made = planned(document, [pod("p1", "a", node="n-a"), pod("p2", "a", node="n-a"), extra], nodes=NODES, replicas=3)
    assert (adopted(made), "p3" in costs(made)) == (({}, False) if alone else ({"p3": "a"}, True))
    assert entries(made)[0]["replicas"] == (2 if alone else 3)
    assert ("PodsLeftOut" in {reason.code for reason in made.reasons}) == alone
    assert made.numbers["unspread"] == alone


def test_taints_have_to_be_tolerated() -> None:
    """X6."""
    taint = {"key": "spot", "value": "true", "effect": "PreferNoSchedule"}
    nodes = [node("n", [taint], zone="a")]
    places = (subset("a"), subset("b", tolerations=[{"key": "spot", "operator": "Exists"}]))
    assert adopted(planned(spread(*places), [pod("p")], nodes=nodes)) == {"p": "b"}


@pytest.mark.parametrize(("ignored", "labels"), [("false", {"pool": "a"}), ("True", None)])
def test_metadata_of_the_patch(ignored: str, labels: Json | None) -> None:
    """X7."""
    place = subset("a", patch={"metadata": {"labels": {"pool": "a"}}, "spec": {"priority": 1}})
    annotation = {"workloadspread.kruise.io/ignore-patch-existing-pods-metadata": ignored}
    made = planned(spread(place, annotations=annotation), [pod("p", node="n-a")], nodes=NODES)
    (patch,) = made.actions
    assert isinstance(patch, Patch)
    body: Json = patch.body["metadata"]
    assert body.get("labels") == labels
    assert body["annotations"] == {MATCHED: '{"name":"ws","subset":"a"}', COST: "100"}
    assert "spec" not in patch.body


def test_a_null_in_the_patch_removes_metadata_of_old_pods() -> None:
    place = subset("a", patch={"metadata": {"labels": {"gone": None}, "annotations": None}})
    made = planned(spread(place), [pod("p", node="n-a")], nodes=NODES)
    (patch,) = made.actions
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["labels"] == {"gone": None}
    assert patch.body["metadata"]["annotations"] == {MATCHED: '{"name":"ws","subset":"a"}', COST: "100"}


def test_a_subset_that_cannot_be_read_takes_no_old_pods_and_is_named() -> None:
    place = subset("a", requiredNodeSelector={"matchExpressions": "all"})
    made = planned(spread(place, subset("b")), [pod("p", node="n-a")], nodes=NODES, replicas=1)
    assert adopted(made) == {"p": "b"}
    assert [reason.code for reason in made.reasons] == ["InvalidSubset"]


def test_a_filter_leaves_other_pods_alone() -> None:
    document = spread(*PLACES)
    document["spec"]["targetFilter"] = {"selector": {"matchLabels": {"tier": "compute"}}}
    pods = [pod("p", node="n-a", labels={"tier": "compute"}), pod("q", node="n-a")]
    assert adopted(planned(document, pods, nodes=NODES)) == {"p": "a"}


@pytest.mark.parametrize("selector", [{}, None])
def test_a_filter_without_a_selector_means_all(selector: Json | None) -> None:
    document = spread(*PLACES)
    given = {} if selector is None else {"selector": selector}
    document["spec"]["targetFilter"] = {"replicasPathList": ["spec.x"]} | given
    assert adopted(planned(document, [pod("p", node="n-a")], nodes=NODES)) == {"p": "a"}
