"""The order in which pods are updated (sidecarset.md §7.8, §11.4)."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.sidecarset.types import SidecarSetUpdateStrategy
from flotilla_sidecar.sidecarset.rollout import expanded, update_order
from tests.unit.sidecarset.build import NOW, planned, pod, side, updated


def fleet(number: int, labels: dict[str, Collection[int]] | None = None) -> list[Pod]:
    """Return pods 0 … n-1 in the order of updates. `labels`: `a=1` and the pods that have it."""
    found: list[Pod] = []
    for at in range(number):
        own = [text.split("=") for text, those in (labels or {}).items() if at in those]
        found.append(pod(f"p{at:02}", "A", age=at, labels=dict(own)))
    return found


def order(pods: list[Pod], waiting: Collection[int] | None = None, **strategy: Any) -> list[int]:
    chosen = [pods[at] for at in (range(len(pods)) if waiting is None else waiting)]
    settings = msgspec.convert(strategy, SidecarSetUpdateStrategy)
    return [int(one.metadata.name[1:]) for one in update_order(chosen, pods, settings)]


def scattered(*terms: str) -> dict[str, Any]:
    return {"scatterStrategy": [dict(zip(("key", "value"), term.split("="), strict=True)) for term in terms]}


@pytest.mark.parametrize(
    ("number", "labelled", "expected"),
    [
        (10, range(4), [0, 4, 5, 1, 6, 7, 2, 8, 9, 3]),
        (12, range(3), [0, 3, 4, 5, 6, 7, 1, 8, 9, 10, 11, 2]),
        (7, range(5), [0, 1, 5, 2, 3, 6, 4]),
        (7, range(1), list(range(7))),
        (7, range(6), list(range(7))),
    ],
)
def test_pods_with_a_label_are_spread(number: int, labelled: range, expected: list[int]) -> None:
    assert order(fleet(number, {"a=1": labelled}), **scattered("a=1")) == expected


def test_any_value_is_each_value_that_pods_have() -> None:
    there = fleet(10, {"a=1": range(4), "a=2": range(4, 7)})
    both = order(there, **scattered("a=1", "a=2"))
    assert order(there, **scattered("a=*")) == both
    assert order(there, **scattered("a=*", "a=1")) == both, "and none twice"
    terms = msgspec.convert(scattered("b=*"), SidecarSetUpdateStrategy).scatter_strategy
    assert expanded(terms, there) == []


def test_the_values_of_all_pods_count_not_only_of_those_that_wait() -> None:
    there = fleet(6, {"a=1": [0], "a=2": [1, 2, 3]})
    terms = msgspec.convert(scattered("a=*"), SidecarSetUpdateStrategy).scatter_strategy
    assert [term.value for term in expanded(terms, there)] == ["1", "2"]
    assert order(there, waiting=[1, 2, 3, 4, 5], **scattered("a=*")) == order(
        there, waiting=[1, 2, 3, 4, 5], **scattered("a=2")
    )


WEIGHTS = {
    "weightPriority": [
        {"weight": 10, "matchSelector": {"matchLabels": {"a": "1"}}},
        {"weight": 20, "matchSelector": {"matchLabels": {"b": "1"}}},
    ]
}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param(WEIGHTS, [2, 1, 3, 0, 4], id="sums of weights"),
        pytest.param({"orderPriority": [{"orderedKey": "o"}]}, [0, 1, 2, 4, 3], id="numbers, and who has none first"),
        pytest.param({"orderPriority": [{"orderedKey": "no"}]}, [0, 1, 2, 3, 4], id="stable where nothing matches"),
        pytest.param(
            {"weightPriority": [{"weight": 1, "matchSelector": {"matchLabels": {"no": "1"}}}]},
            [0, 1, 2, 3, 4],
            id="stable without weights",
        ),
    ],
)
def test_priorities(strategy: dict[str, Any], expected: list[int]) -> None:
    there = fleet(5, {"a=1": [0, 2], "b=1": [1, 2, 3], "o=v-2": [3], "o=v-10": [4]})
    assert order(there, priorityStrategy=strategy) == expected


def test_those_in_need_first() -> None:
    """Unscheduled, pending, not ready; then the last to become ready; then the most restarts; then the newest."""
    since = NOW - timedelta(seconds=30)
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    statuses = [{"name": "main", "restartCount": 2}, {"name": "proxy"}]
    there = [
        pod("old", "A", age=100, status={"conditions": ready}),
        pod("new", "A", age=50, status={"conditions": ready}),
        pod("restarted", "A", age=200, status={"conditions": ready, "containerStatuses": statuses}),
        pod("just-ready", "A", age=20),
        pod("unready", "A", "!", age=300),
        pod("pending", "A", "P", age=400, spec={"nodeName": "n"}),
        pod("unscheduled", "A", "P", age=500),
    ]
    names = [one.metadata.name for one in update_order(there, there, SidecarSetUpdateStrategy())]
    assert names == ["unscheduled", "pending", "unready", "just-ready", "restarted", "new", "old"]


def test_the_partition_keeps_the_last_ones() -> None:
    there = fleet(4)
    assert updated(planned(side().p(2).m(4), there)) == ["p00", "p01"]
