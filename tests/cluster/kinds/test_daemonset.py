"""DaemonSets on real containers: the article's examples, surge, and nodes that are drained, tainted or silent."""

import json

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from tests.cluster.conftest import Running
from tests.integration.daemonset.test_seed_documents import (
    test_in_place,
    test_one_pod_on_each_node_and_an_update_of_one_node,
)
from tests.support.daemons import IN_PLACE, NAME, NEW, by_node, crowded, replaced, serving, settled, started
from tests.support.workspace import Workspace, identity, is_ready, restarts

__all__ = [
    "test_in_place",
    "test_one_pod_on_each_node_and_an_update_of_one_node",
]

WATCHED = (DAEMON_SET,)


def pages(space: Workspace) -> set[str]:
    """Return the containers' pages, which name them."""
    return {
        space.kubectl("exec", pod["metadata"]["name"], "--", "wget", "-qO-", "127.0.0.1").strip()
        for pod in by_node(space).values()
    }


def test_a_surge_never_leaves_a_node_without_a_pod(space: Workspace):
    started(space, 3, {"maxSurge": "100%", "maxUnavailable": 0})
    mark = space.now()
    space.set_image(NEW, NAME)
    settled(space, 3, updatedNumberScheduled=3, numberAvailable=3)
    for pods in space.moments(mark):
        assert len(serving(pods)) == 3
        assert not crowded(pods.values())
    assert pages(space) == {NEW}


def test_a_drained_node_keeps_its_daemon_and_a_tainted_one_loses_it(space: Workspace):
    """kubectl does not support our kind, so it drains with --force only; the pod comes back on the cordoned node."""
    before = started(space, 3)
    kubectl = space.cluster.kubectl
    said = kubectl("drain", "real-0", "--ignore-daemonsets", "--force", "--timeout=60s")
    assert f"evicting pod {space.name}/{before['real-0']['metadata']['name']}" in said
    replaced(space, before["real-0"])
    settled(space, 3, numberMisscheduled=0)
    kubectl("uncordon", "real-0")
    kubectl("taint", "node", "real-0", "example.com/broken=:NoExecute")
    settled(space, 2, numberMisscheduled=0)
    assert sorted(by_node(space)) == ["real-1", "real-2"]
    kubectl("taint", "node", "real-0", "example.com/broken-")
    settled(space, 3)


async def test_a_node_that_does_not_answer_is_updated_when_it_does(space: Workspace, running: Running):
    """Its pod stays, and counts as one that would not be made now; the others are updated meanwhile."""
    before = started(space, 3, IN_PLACE | {"maxUnavailable": 2})
    await running.cluster.kill("real-1", "kubelet")
    unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}
    body = json.dumps(unknown)  # as the node controller writes after its grace period, which is long here
    running.cluster.kubectl("patch", "node", "real-1", "--subresource=status", "--type=strategic", "-p", body)
    space.settled(NAME, desiredNumberScheduled=2, numberReady=2, numberMisscheduled=1)
    space.set_image(NEW, NAME)
    space.settled(NAME, desiredNumberScheduled=2, updatedNumberScheduled=2, numberAvailable=2, numberMisscheduled=1)
    assert restarts(by_node(space)["real-1"]) == 0
    await running.cluster.repair()
    settled(space, 3, updatedNumberScheduled=3, numberAvailable=3, numberMisscheduled=0)
    space.until(lambda: all(map(is_ready, space.pods.values())))
    assert set(map(identity, by_node(space).values())) == set(map(identity, before.values()))
    assert {restarts(pod) for pod in by_node(space).values()} == {1}
    assert pages(space) == {NEW}
