"""Why nodes have no pod of a DaemonSet or BroadcastJob: one reason for each."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Node, Pod
from flotilla_common.control.plan import Reason, State
from flotilla_common.workload.causes import Cause, Group
from flotilla_common.workload.placement import Placement
from flotilla_insight.diagnosis.missing_pods import TO_COME, MissingPods, vacancies
from flotilla_insight.views.kindview import Coverage, CoveredNodes
from tests.unit.daemonset.build import node, pod, template

SCHEDULER = "no node takes it: 0/3 nodes are available: 3 Insufficient cpu"
UNSCHEDULABLE = Group(Cause(code="Unschedulable", message=SCHEDULER, detail="for 4m"), ("d-n1A", "d-n2A"))
GPU = node("gpu", taints=["gpu:NoSchedule"])
WANTS_SSD = template(nodeSelector={"disk": "ssd"})
SSD = node("ssd", disk="ssd")
QUOTA = Reason(State.STUCK, "QuotaExceeded", "creating Pod d-x is refused: exceeded quota: small")
HELD = Reason(State.HELD, "PartitionedScaling", "1 node gets no pod yet", ("n2",))


def told(
    nodes: list[Node], pods: list[Pod], *reasons: Reason, content: Any = None, once: bool = False
) -> list[tuple[str, str]]:
    placement = Placement.of_daemons(msgspec.json.encode(content or template()))
    coverage = Coverage(why_not=lambda node: placement.fit(node).why_not, once=once)
    served = CoveredNodes(nodes=nodes, pods=pods, coverage=coverage)
    found = vacancies(served, [UNSCHEDULABLE], reasons)
    return [(",".join(one.nodes), one.why) for one in found]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param("", [], id="serves"),
        pytest.param("!", [], id="is there, and does not serve: its own trouble"),
        pytest.param("P", [("n1", SCHEDULER)], id="no node takes it"),
        pytest.param("T", [("n1", "its last pod is terminating")], id="on its way out"),
        pytest.param("F", [("n1", "its pod has ended, and is about to be replaced")], id="failed"),
    ],
)
def test_a_node_with_a_pod(flags: str, expected: list[tuple[str, str]]) -> None:
    name = "d-n1A" if flags == "P" else "d-else"
    assert told([node("n1")], [pod("n1", "A", flags, name=name)]) == expected


def test_a_pod_of_which_nothing_is_known() -> None:
    assert told([node("n1")], [pod("n1", "A", "P", name="d-else")]) == [("n1", "its pod has no node yet")]


@pytest.mark.parametrize(
    ("where", "content", "expected"),
    [
        pytest.param(GPU, template(), "has the untolerated taint gpu:NoSchedule", id="taint"),
        pytest.param(node("n1"), WANTS_SSD, "does not match nodeSelector disk=ssd", id="selector"),
        pytest.param(SSD, WANTS_SSD, TO_COME, id="fits"),
    ],
)
def test_a_node_without_any(where: Node, content: Any, expected: str) -> None:
    assert [why for _, why in told([where], [], content=content)] == [expected]


def test_what_the_service_says() -> None:
    assert told([node("n1"), node("n2")], [], HELD) == [("n1", TO_COME), ("n2", HELD.message)]
    assert told([node("n1")], [], QUOTA) == [("n1", QUOTA.message)]
    assert told([node("n1")], [], msgspec.structs.replace(QUOTA, symptom=True)) == [("n1", TO_COME)]


def test_nodes_with_the_same_reason_stand_together_and_those_that_want_a_pod_first() -> None:
    nodes = [GPU, *(node(f"n{number}") for number in (3, 1, 2)), node("gpu-2", taints=["gpu:NoSchedule"])]
    pods = [pod("n1", "A", "P", name="d-n1A"), pod("n2", "A", "P", name="d-n2A")]
    assert told(nodes, pods) == [
        ("n1,n2", SCHEDULER),
        ("n3", TO_COME),
        ("gpu,gpu-2", "has the untolerated taint gpu:NoSchedule"),
    ]
    assert MissingPods(TO_COME, tuple("abcdefg")).sentence == f"a, b, c, d, e and 2 more: {TO_COME}"


@pytest.mark.parametrize("flags", ["F", "S"])
def test_a_node_that_had_its_pod(flags: str) -> None:
    assert told([node("n1")], [pod("n1", "A", flags, name="d-else")], once=True) == []
