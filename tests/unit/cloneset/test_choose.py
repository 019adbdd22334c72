"""Which pods go first (cloneset.md §4.7)."""

from datetime import timedelta

import pytest

from flotilla_cloneset.cloneset.choose import choose, deletion_cost
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
    (chosen,) = choose(pods, (), 1, 0, unavailable=unavailable, topology_keys=keys, node_labels=ZONES)
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


def test_the_old_group_gives_its_share_first() -> None:
    new, old = [pod("n1"), pod("n2")], [pod("o1", "o"), pod("o2", "o")]
    names = [chosen.metadata.name for chosen in choose(new, old, 3, 2, unavailable=())]
    assert names == ["sample-o1", "sample-o2", "sample-n1"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [("7", 7), ("-7", -7), ("+7", 0), ("007", 0), ("-0", 0), ("0", 0), ("", 0), ("x", 0), ("2147483648", 0), ("²", 0)],
)
def test_deletion_cost(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", annotations={COST: text})) == cost
