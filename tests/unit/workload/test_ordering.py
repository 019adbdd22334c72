"""Update order: default order, priority, scatter (common.md §5, §11)."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.workload import PriorityStrategy, ScatterTerm
from flotilla_common.workload.ordering import preparing_update_first, scatter, sort_by_priority, update_order
from flotilla_common.workload.predicates import default_order_key
from tests.unit.workload.build import NOW, pod, status


def names(pods: Sequence[Pod]) -> list[str]:
    return [item.metadata.name for item in pods]


def priority(**members: Any) -> PriorityStrategy:
    return msgspec.convert(members, PriorityStrategy)


def weight(number: int, **labels: str) -> dict[str, Any]:
    return {"weight": number, "matchSelector": {"matchLabels": labels}}


LATER = {"lastTransitionTime": NOW}
TIMELESS = {"lastTransitionTime": None}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("b", node=""), pod("a")),
        (pod("b", conditions={"Ready": "False"}), pod("a")),
        (pod("b", conditions={"Ready": LATER}), pod("a")),
        (pod("b", conditions={"Ready": TIMELESS}), pod("a", conditions={"Ready": LATER})),
        (pod("b", statuses=[status("nginx", restartCount=2)]), pod("a", statuses=[status("nginx", restartCount=1)])),
        (pod("a", statuses=[status("nginx")]), pod("b", statuses=[])),
        (pod("b", creationTimestamp=NOW), pod("a")),
        (pod("b", creationTimestamp=None), pod("a", creationTimestamp=NOW)),
        (pod("a"), pod("b")),
    ],
    ids=[
        "unscheduled",
        "not ready",
        "ready later",
        "timeless",
        "restarts",
        "none",
        "younger",
        "no creation time",
        "name",
    ],
)
def test_default_order(first: Pod, second: Pod) -> None:
    assert sorted([second, first], key=default_order_key) == [first, second]


@pytest.mark.parametrize(
    ("first", "second"), [("Pending", "Unknown"), ("Unknown", "Running"), ("", "Running"), ("New", "Unknown")]
)
def test_default_order_of_phases(first: str, second: str) -> None:
    pods = [
        msgspec.structs.replace(pod(), status=msgspec.structs.replace(pod().status, phase=p)) for p in (first, second)
    ]
    assert sorted([pods[1], pods[0]], key=default_order_key) == pods


def test_restarts_count_sidecars_only_when_restartable() -> None:
    def with_init(name: str, policy: str) -> Pod:
        document = msgspec.to_builtins(pod(name))
        document["spec"]["initContainers"] = [{"name": "init", "restartPolicy": policy}]
        document["status"]["initContainerStatuses"] = [{"name": "init", "restartCount": 5}]
        return msgspec.convert(document, Pod)

    assert names(sorted([with_init("a", ""), with_init("b", "Always")], key=default_order_key)) == ["b", "a"]


@pytest.mark.parametrize(
    ("flags", "waiting", "expected"),
    [
        ("11000000", None, "0 2 3 4 5 6 7 1"),
        ("00000111", None, "5 0 1 2 6 3 4 7"),
        ("1111100", None, "0 1 5 2 3 6 4"),
        ("11110000", None, "0 4 1 5 2 6 7 3"),
        ("111100000000", (2, 3, *range(6, 12)), "6 7 8 2 9 10 11 3"),
        ("10", None, "0 1"),
        ("10000", None, "0 1 2 3 4"),
        ("11110", None, "0 1 2 3 4"),
    ],
)
def test_scatter_one_term(flags: str, waiting: Sequence[int] | None, expected: str) -> None:
    pods = [pod(str(index), labels={"zone": flag}) for index, flag in enumerate(flags)]
    chosen = [pods[index] for index in waiting] if waiting else pods
    assert names(scatter(chosen, pods, [ScatterTerm(key="zone", value="1")])) == expected.split()


def test_scatter_applies_the_most_frequent_term_first_and_drops_idle_ones() -> None:
    pods = [pod(str(index), labels={"a": str(index < 2), "b": str(index < 4)}) for index in range(8)]
    few, many = ScatterTerm(key="a", value="True"), ScatterTerm(key="b", value="True")
    idle = ScatterTerm(key="c", value="x")
    expected = scatter(scatter(pods, pods, [many]), pods, [few])
    assert scatter(pods, pods, [few, idle, many]) == expected


def test_weights_are_summed_and_stable() -> None:
    pods = [pod("a"), pod("b", labels={"x": "1"}), pod("c", labels={"y": "1"}), pod("d", labels={"x": "1", "y": "1"})]
    strategy = priority(weightPriority=[weight(10, x="1"), weight(20, y="1")])
    assert names(sort_by_priority(pods, strategy)) == ["d", "c", "b", "a"]
    assert names(sort_by_priority(pods, priority(weightPriority=[weight(10, z="1")]))) == ["a", "b", "c", "d"]


def test_order_keys() -> None:
    labels = {
        "none": {},
        "first-5": {"k1": "5"},
        "first-10": {"k1": "sts-10"},
        "first-0": {"k1": "x"},
        "first-huge": {"k1": "9" * 30},
        "second-99": {"k2": "99"},
        "both": {"k2": "99", "k1": "7"},
    }
    pods = [pod(name, labels=values) for name, values in labels.items()]
    strategy = priority(orderPriority=[{"orderedKey": "k1"}, {"orderedKey": "k2"}])
    expected = ["none", "first-10", "both", "first-5", "first-0", "first-huge", "second-99"]
    assert names(sort_by_priority(pods, strategy)) == expected


def test_a_term_past_admission_matches_nothing() -> None:
    strategy = priority(weightPriority=[{"weight": 1, "matchSelector": {"matchLabels": {"": "?"}}}, weight(1, x="1")])
    assert names(sort_by_priority([pod("a"), pod("b", labels={"x": "1"})], strategy)) == ["b", "a"]


def test_no_strategy_changes_nothing() -> None:
    pods = [pod("b"), pod("a")]
    assert sort_by_priority(pods, None) == sort_by_priority(pods, priority()) == scatter(pods, pods, []) == pods


def test_update_order_puts_all_together() -> None:
    pods = [
        pod("a", labels={"x": "1"}),
        pod("b"),
        pod("c", conditions={"Ready": "False"}),
        pod("d", state="PreparingUpdate"),
    ]
    ordered = update_order(pods, pods, priority(weightPriority=[weight(1, x="1")]), [])
    assert names(ordered) == ["d", "a", "c", "b"]
    assert names(preparing_update_first(pods)) == ["d", "a", "b", "c"]
