"""Deletion costs (workloadspread.md §8.4), and scaling in by them (§11)."""

import pytest

from flotilla_topology.workloadspread.snapshot import Target
from tests.testkit.documents import Json
from tests.unit.workloadspread.build import COST, costs, planned, pod, spread, subset

TABLE = [
    (1, 0, (100, -100), (100, -100)),
    (2, 0, (200, -100), (100, -200)),
    (2, 1, (100, -200), (200, -100)),
    (3, 0, (300, -100), (100, -300)),
    (3, 1, (200, -200), (200, -200)),
    (3, 2, (100, -300), (300, -100)),
]


@pytest.mark.parametrize(("count", "index", "latest", "older"), TABLE)
def test_the_table(count: int, index: int, latest: tuple[int, int], older: tuple[int, int]) -> None:
    subsets = [subset(f"s{number}", 1) for number in range(count)]
    names = ("new1", "new2", "old1", "old2")
    versions = {name: "v2" if name.startswith("new") else "v1" for name in names}
    target = Target(replicas=10, costed=True, latest="v2")
    made = planned(spread(*subsets), [pod(name, f"s{index}") for name in names], target=target, versions=versions)
    found = costs(made)
    assert tuple(sorted((found["new1"], found["new2"]), reverse=True)) == latest
    assert tuple(sorted((found["old1"], found["old2"]), reverse=True)) == older


@pytest.mark.parametrize(("count", "cost"), [(1, -200), (2, -300), (3, -400)])
def test_pods_of_no_subset_go_first(count: int, cost: int) -> None:
    subsets = [subset(f"s{number}") for number in range(count)]
    assert costs(planned(spread(*subsets), [pod("p", "gone")])) == {"p": cost}


def test_versions_that_are_not_told_apart() -> None:
    made = planned(spread(subset("a", 1), subset("b")), [pod("p", "a"), pod("q", "b")])
    assert costs(made) == {"p": 200, "q": 100}


def test_what_is_right_is_not_written_again() -> None:
    assert costs(planned(spread(subset("a")), [pod("p", "a", annotations={COST: "100"})])) == {}
    assert costs(planned(spread(subset("a")), [pod("p", "a", annotations={COST: "7"})])) == {"p": 100}


def test_only_active_pods_are_touched() -> None:
    pods = [pod("p", "a", phase="Succeeded"), pod("q", "a", deletionTimestamp="2026-11-26T12:00:00Z")]
    assert costs(planned(spread(subset("a")), pods)) == {}


def test_targets_without_costs() -> None:
    assert costs(planned(spread(subset("a")), [pod("p", "a")], target=Target(replicas=1))) == {}


def test_nothing_is_written_while_nobody_knows_which_pods_are_new() -> None:
    target = Target(replicas=1, costed=True, latest=None)
    assert costs(planned(spread(subset("a")), [pod("p", "a")], target=target)) == {}


def test_of_a_paused_target_all_pods_count_as_new() -> None:
    target = Target(replicas=2, costed=True, latest="v2", ordered=False)
    made = planned(
        spread(subset("a", 1), subset("b")),
        [pod("p", "a"), pod("q", "b")],
        target=target,
        versions={"p": "v1", "q": "v2"},
    )
    assert costs(made) == {"p": 200, "q": 100}


SURPLUS = [
    ([pod("x", "a", node=""), pod("y", "a")], "x"),
    ([pod("y", "a"), pod("x", "a", phase="Pending")], "x"),
    ([pod("old", "a", creationTimestamp="2026-11-26T10:00:00Z"), pod("x", "a")], "x"),
]


@pytest.mark.parametrize(("pods", "surplus"), SURPLUS)
def test_of_too_many_pods_those_go_that_are_missed_least(pods: list[Json], surplus: str) -> None:
    """D2: the pod beyond the limit gets the lowest cost."""
    found = costs(planned(spread(subset("a", 1)), pods))
    assert [name for name, cost in found.items() if cost == -100] == [surplus]


def test_limits_that_were_lowered() -> None:
    """D3."""
    pods = [*(pod(f"a{number}", "a") for number in range(4)), *(pod(f"b{number}", "b") for number in range(4))]
    found = costs(planned(spread(subset("a", 3), subset("b", 2)), pods))
    assert sorted(found.values()) == [-200, -200, -100, 100, 100, 200, 200, 200]


def test_of_pods_alike_the_same_go_in_whatever_order_they_are_seen() -> None:
    pods = [pod(name, "a") for name in "pqr"]
    there, back = (costs(planned(spread(subset("a", 1)), seen)) for seen in (pods, pods[::-1]))
    assert there == back == {"p": -100, "q": -100, "r": 100}
