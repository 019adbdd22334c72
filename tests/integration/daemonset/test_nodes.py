"""DaemonSets on nodes that come and go, under kills, and their cost for the apiserver (daemonset.md §4.1, §4.2).

Each scenario reserves nodes of its own by a label.
"""

import asyncio
from collections import Counter

import pytest

from flotilla_dev.cluster import kwok
from tests.support.audit import Write, on, said
from tests.support.churn import POOL, churning
from tests.support.daemons import (
    IN_PLACE,
    NAME,
    NEW,
    OLD,
    by_node,
    crowded,
    daemonset,
    replaced,
    serving,
    settled,
    started,
    strategy,
)
from tests.support.workspace import Workspace, identity, image, restarts
from tests.testkit.documents import Json
from tests.testkit.planes import Own

FLAGS = ("--lease-duration=6", "--lease-retry-period=1")
"""Shorter timeouts than the defaults, so that scenarios do not spend their time waiting."""

MANY, DOWN = 12, 3


def pool(space: Workspace, first: int, count: int) -> list[str]:
    """Create nodes for this scenario alone, from `node-<first>` on."""
    nodes = [kwok.node(index) for index in range(first, first + count)]
    for node in nodes:
        node["metadata"]["labels"][POOL] = space.name
    space.create(*nodes)
    return [node["metadata"]["name"] for node in nodes]


def in_pool(space: Workspace) -> Json:
    """Return the part of the pod spec that selects the nodes."""
    return {"nodeSelector": {POOL: space.name}}


def restrict(space: Workspace, node: str, *taints: str) -> None:
    """Run `kubectl taint`."""
    space.cluster.kubectl("taint", "node", node, *taints)


def label(space: Workspace, node: str, *labels: str) -> None:
    """Run `kubectl label --overwrite`."""
    space.cluster.kubectl("label", "--overwrite", "node", node, *labels)


def test_nodes_come_are_relabelled_tainted_and_go(space: Workspace):
    """Rows 32 to 34: taints keep pods away or drive them out; a cordoned node keeps its daemon."""
    first, second = pool(space, 10, 2)
    started(space, 2, pod=in_pool(space))
    (third,) = pool(space, 12, 1)
    settled(space, 3)
    label(space, first, f"{POOL}-")
    settled(space, 2, currentNumberScheduled=2, numberMisscheduled=0)
    assert sorted(by_node(space)) == [second, third]
    label(space, first, f"{POOL}={space.name}")
    settled(space, 3)

    before = by_node(space)
    restrict(space, first, "example.com/full=:NoSchedule")
    settled(space, 2, numberMisscheduled=1)
    assert identity(by_node(space)[first]) == identity(before[first])
    space.kubectl("delete", "pod", before[first]["metadata"]["name"])
    settled(space, 2, numberMisscheduled=0)
    assert sorted(by_node(space)) == [second, third]
    restrict(space, second, "example.com/broken=:NoExecute")
    settled(space, 1, numberMisscheduled=0)
    assert sorted(by_node(space)) == [third]
    restrict(space, first, "example.com/full-")
    restrict(space, second, "example.com/broken-")
    settled(space, 3)
    space.cluster.kubectl("cordon", third)
    space.kubectl("delete", "pod", before[third]["metadata"]["name"])
    replaced(space, before[third])
    settled(space, 3, numberMisscheduled=0)

    space.cluster.kubectl("delete", "node", third)
    settled(space, 2, currentNumberScheduled=2, numberMisscheduled=0)


def test_what_it_costs(space: Workspace, own: Own):
    """The apiserver counts the writes: two for a new pod, three for an in-place update, one for a deletion.

    Applying the same set again costs nothing.
    """
    pool(space, 100, MANY)
    own.audit.ours()
    started(space, MANY, IN_PLACE | {"maxUnavailable": "100%"}, pod=in_pool(space))
    settled(space, MANY, numberAvailable=MANY)
    writes = mine(space, own)
    assert len(on(writes, "pods")) == 2 * MANY, said(writes)
    assert len(on(writes, "controllerrevisions")) == 1, said(writes)
    assert len(on(writes, "daemonsets")) <= 12, said(writes)
    space.set_image(NEW, NAME)
    settled(space, MANY, numberAvailable=MANY, updatedNumberScheduled=MANY)
    writes = mine(space, own)
    assert max(Counter(write.object_ref.name for write in on(writes, "pods")).values()) <= 3, said(writes)
    assert len(on(writes, "daemonsets")) <= 12, said(writes)
    assert all(write.response_status.code < 300 for write in writes), said(writes)
    label(space, "node-100", f"{POOL}-")
    settled(space, MANY - 1, currentNumberScheduled=MANY - 1)
    writes = mine(space, own)
    assert [write.what for write in on(writes, "pods")] == ["delete pods"], said(writes)


def mine(space: Workspace, own: Own) -> list[Write]:
    """Return Flotilla's writes in the namespace since the last call."""
    return [write for write in own.audit.ours() if write.object_ref.namespace == space.name]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("first", "how"), [(200, IN_PLACE), (300, {})], ids=["in place", "anew"])
async def test_a_killed_service_goes_on_where_it_was(space: Workspace, own: Own, first: int, how: Json):
    await asyncio.to_thread(pool, space, first, MANY)
    before = await asyncio.to_thread(started, space, MANY, how | {"maxUnavailable": DOWN}, pod=in_pool(space))
    mark = space.now()
    space.set_image(NEW, NAME)
    await asyncio.to_thread(space.until, lambda: sum(image(pod) == NEW for pod in space.pods.values()) >= DOWN)
    await own.fleet.restart("daemonset")
    await asyncio.to_thread(settled, space, MANY, numberAvailable=MANY, updatedNumberScheduled=MANY)
    after = by_node(space)
    assert len(after) == MANY
    assert min(len(serving(pods)) for pods in space.moments(mark)) >= MANY - DOWN
    assert not any(crowded(pods.values()) for pods in space.moments(mark))
    if how:
        assert set(map(identity, after.values())) == set(map(identity, before.values()))
        assert {restarts(pod) for pod in after.values()} == {1}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_pool_in_motion(space: Workspace, own: Own):
    """24 nodes come, go, are relabelled, tainted and cordoned during two updates, one in place, one with new pods."""
    async with churning(own.fleet.cluster, space.name, range(400, 424)) as churn:
        manifest = daemonset(IN_PLACE | {"maxUnavailable": "20%"}, pod=in_pool(space))
        await asyncio.to_thread(space.apply, manifest)
        await churn.settled(OLD, 60)
        await asyncio.to_thread(space.set_image, NEW, NAME)
        await churn.changes(40)
        await asyncio.to_thread(strategy, space, rollingUpdateType="Standard")
        await asyncio.to_thread(space.set_image, "nginx:perl", NAME)
        await churn.changes(40)
        await churn.settled("nginx:perl", 90)
        assert churn.record.crowded == []
        await own.fleet.healthy()
