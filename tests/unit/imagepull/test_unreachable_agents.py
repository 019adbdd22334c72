"""Nodes without an agent: they are reported on the jobs that wait for them, and on their NodeImages."""

import re
from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.kinds.nodeimage.types import NodeImage, NodeImageStatus
from flotilla_common.control.plan import Plan
from flotilla_jobs.nodeimage.plan import plan
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot
from tests.testkit.documents import decoded
from tests.testkit.plans import codes
from tests.unit.imagepull.build import NOW, ago, begun, entry, fresh, job, node, node_image, planned, pulling, tag

NO_AGENT = "stuck: no node agent has answered since <{}> on {}; see that it runs there and reaches the bus"


def asked(name: str, seconds: float) -> NodeImage:
    """Return a node that has not answered for this long."""
    return node_image(name, [tag("J", created=seconds)])


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        pytest.param([asked("n1", 9), pulling("n2")], ["waiting: 2 nodes at work: n1, n2"], id="it may come"),
        pytest.param([asked("n1", 10)], [NO_AGENT.format(10, "1 node: n1")], id="nobody there"),
        pytest.param(
            [asked("n1", 30), asked("n2", 40), pulling("n3")],
            [NO_AGENT.format(40, "2 nodes: n1, n2"), "waiting: 1 node at work: n3"],
            id="two of three",
        ),
        pytest.param(
            [asked("n1", 30), *fresh("n2", "n3")],
            [NO_AGENT.format(30, "1 node: n1"), "waiting: no node is at work; 2 more wait, parallelism is 1"],
            id="others wait for it",
        ),
        pytest.param(
            [node_image("n1", [tag("J", created=30, version=1)], [entry("Succeeded")])],
            [NO_AGENT.format(30, "1 node: n1")],
            id="only of an earlier round",
        ),
    ],
)
def test_nodes_without_an_agent(nodes: list[NodeImage], said: list[str]):
    """They do not count as active, and the reason gives the time since when."""
    plan = planned(job(status=begun()), nodes)
    wanted = [re.sub(r"<(\d+)>", lambda found: ago(float(found[1])), one) for one in said]
    assert [f"{reason.state}: {reason.message}" for reason in plan.reasons] == wanted


def test_silence_is_looked_for_by_itself():
    assert planned(job(status=begun()), [asked("n1", 4)]).wake_at == NOW + timedelta(seconds=6)
    assert planned(job(status=begun()), [asked("n1", 14), pulling("n2")]).wake_at is None


def passed(image: NodeImage, **members: Any) -> Plan:
    return plan(NodeImageSnapshot(name="n1", node=node("n1"), image=image, **members), NOW)


@pytest.mark.parametrize(
    ("image", "since"),
    [
        pytest.param(node_image("n1", [tag("J", created=60)]), 60, id="says nothing of a tag"),
        pytest.param(node_image("n1", creationTimestamp=ago(30)), 30, id="has never said anything"),
        pytest.param(
            node_image("n1", [tag("J", created=20)], creationTimestamp=ago(30)), 30, id="since the node is there"
        ),
    ],
)
def test_a_node_without_an_agent(image: NodeImage, since: float):
    first = passed(image).reasons[0]
    assert (first.code, first.objects) == ("WaitingForNodeAgent", ("n1",))
    assert f"since {ago(since)} on 1 node: n1; see that it runs there" in first.message
    heard = decoded({"imageStatuses": {"nginx": {"tags": [entry("Waiting")]}}}, NodeImageStatus)
    assert codes(passed(image, report=heard)) <= {"PullingImages"}


def test_a_node_that_stays_silent_is_looked_at_by_itself():
    assert passed(node_image("n1", creationTimestamp=ago(3))).wake_at == NOW + timedelta(seconds=7)
