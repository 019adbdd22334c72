"""The order in which pods are deleted (cloneset.md §4.7)."""

from datetime import timedelta

import pytest

from flotilla_cloneset.cloneset.deletion_order import deletion_cost, pods_to_delete
from flotilla_common.api.core import Pod
from tests.unit.cloneset.build import LONG_AGO, pod

ZONES = {
    "node-1": {"zone": "a", "kubernetes.io/hostname": "node-1"},
    "node-2": {"zone": "a", "kubernetes.io/hostname": "node-2"},
    "node-3": {"zone": "b", "kubernetes.io/hostname": "node-3"},
    "node-4": {"kubernetes.io/hostname": "shared"},
    "node-5": {"kubernetes.io/hostname": "shared"},
}
COST = "controller.kubernetes.io/pod-deletion-cost"


def first(*pods: Pod, unavailable: tuple[str, ...] = (), keys: tuple[str, ...] = ()) -> str:
    (chosen,) = pods_to_delete(pods, (), 1, 0, unavailable=unavailable, topology_keys=keys, node_labels=ZONES)
    return chosen.metadata.name.removeprefix("sample-")


@pytest.mark.parametrize(
    ("pods", "unavailable", "expected"),
    [
        pytest.param([pod("a", ready=False), pod("b", node="")], (), "b", id="unscheduled before all"),
        pytest.param([pod("a", phase="Unknown"), pod("b", phase="Pending")], (), "b", id="phase"),
        pytest.param([pod("a"), pod("b")], ("uid-b",), "b", id="not available"),
        pytest.param([pod("a"), pod("b", ready=False)], ("uid-a", "uid-b"), "b", id="not ready"),
        pytest.param([pod("a", node="x"), pod("b", node="y", annotations={COST: "-1"})], (), "b", id="cost"),
        pytest.param(
            [pod("a", node="x"), pod("b", node="y", ready_since=LONG_AGO + timedelta(seconds=9))],
            (),
            "b",
            id="ready later",
        ),
        pytest.param([pod("a", node="x"), pod("b", node="y", restarts=3)], (), "b", id="more restarts"),
        pytest.param(
            [pod("a", node="x"), pod("b", node="y", created=LONG_AGO + timedelta(seconds=9))], (), "b", id="younger"
        ),
        pytest.param([pod("a", node="x"), pod("b", node="y"), pod("c", node="y")], (), "b", id="crowded node"),
    ],
)
def test_criteria(pods: list[Pod], unavailable: tuple[str, ...], expected: str) -> None:
    assert first(*pods, unavailable=unavailable) == expected


def test_spread_constraints_count_domains_instead_of_nodes() -> None:
    pods = (pod("a", node="node-3"), pod("b", node="node-1"), pod("c", node="node-2"))
    assert first(*pods) == "a"
    assert first(*pods, keys=("zone",)) == "b"
    assert first(*pods, keys=("kubernetes.io/hostname",)) == "a"


def test_within_a_domain_the_crowded_node_gives_first_but_not_within_a_host() -> None:
    def placed(alone: str, crowded: str) -> tuple[Pod, ...]:
        return (pod("a", node=alone), pod("b", node=crowded), pod("c", node=crowded))

    assert first(*placed("node-1", "node-2"), keys=("zone",)) == "b"
    assert first(*placed("node-4", "node-5"), keys=("kubernetes.io/hostname",)) == "a"


def test_a_domain_is_what_the_label_says() -> None:
    """Nodes without the label, and unknown nodes, are in no domain."""
    pods = (pod("a", node="node-4"), pod("b", node="node-9"), pod("c", node="node-4"), pod("d", node="node-3"))
    assert first(*pods, keys=("zone",)) == "d"


@pytest.mark.parametrize(
    ("zoned", "racked", "expected"),
    [
        pytest.param(3, 3, "r0", id="3 ln 4 + ln 6 < ln 4 + 3 ln 6"),
        pytest.param(4, 3, "z0", id="4 ln 4 + ln 7 > ln 4 + 3 ln 7"),
        pytest.param(7, 5, "r0", id="7 ln 4 + ln 10 < ln 4 + 5 ln 10"),
    ],
)
def test_constraints_weigh_by_the_number_of_their_domains(zoned: int, racked: int, expected: str) -> None:
    """Pods z0, z1, … are in one zone, each in a rack of its own; pods r0, r1, … in one rack, r0 alone in a zone."""
    crowd = {f"z{number}": {"zone": "a", "rack": str(number)} for number in range(zoned)}
    racks = {f"r{number}": {"zone": "b", "rack": "r"} if number == 0 else {"rack": "r"} for number in range(racked)}
    group = [pod(name, node=name) for name in (*crowd, *racks)]
    (chosen,) = pods_to_delete(
        group, (), 1, 0, unavailable=(), topology_keys=("zone", "rack"), node_labels={**crowd, **racks}
    )
    assert chosen.metadata.name == f"sample-{expected}"


def test_all_nodes_count() -> None:
    assert first(pod("c", node="y"), pod("b", node="y"), pod("a", node="x")) == "b"


def test_how_long_a_pod_is_not_ready_says_nothing() -> None:
    later = pod("b", node="y", ready=False, ready_since=LONG_AGO + timedelta(seconds=9))
    assert first(pod("a", node="x", ready=False), later) == "a"


def names(chosen: list[Pod]) -> list[str]:
    return [one.metadata.name.removeprefix("sample-") for one in chosen]


def test_shares_of_the_groups() -> None:
    new, old = [pod("n2"), pod("n1")], [pod("o2", "o"), pod("o1", "o")]
    assert names(pods_to_delete(new, old, 1, 2, unavailable=())) == ["o1"]
    assert names(pods_to_delete(new, old[:1], 2, 2, unavailable=())) == ["o2", "n1"]
    assert names(pods_to_delete(new, old, 9, 9, unavailable=())) == ["o2", "o1", "n2", "n1"]
    assert names(pods_to_delete(new, old, 0, 0, unavailable=())) == []


def test_a_group_that_goes_as_a_whole_is_not_sorted() -> None:
    assert names(pods_to_delete([pod("b"), pod("a")], (), 2, 0, unavailable=())) == ["b", "a"]


def test_spread_constraints_hold_for_the_old_group_too() -> None:
    old = [pod("a", "o", node="node-3"), pod("b", "o", node="node-1"), pod("c", "o", node="node-2")]
    chosen = pods_to_delete((), old, 1, 1, unavailable=(), topology_keys=("zone",), node_labels=ZONES)
    assert names(chosen) == ["b"]


def test_the_old_group_gives_its_share_first() -> None:
    new, old = [pod("n1"), pod("n2")], [pod("o1", "o"), pod("o2", "o")]
    names = [chosen.metadata.name for chosen in pods_to_delete(new, old, 3, 2, unavailable=())]
    assert names == ["sample-o1", "sample-o2", "sample-n1"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("7", 7),
        ("-7", -7),
        ("+7", 0),
        ("007", 0),
        ("-0", 0),
        ("0", 0),
        ("", 0),
        ("x", 0),
        ("²", 0),
        ("2147483647", 2147483647),
        ("2147483648", 0),
        ("-2147483648", -2147483648),
        ("-2147483649", 0),
    ],
)
def test_deletion_cost(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", annotations={COST: text})) == cost
