"""Updates on three nodes: partitions, deletions by users, and hooks (daemonset.md §4.8)."""

from tests.support.daemons import IN_PLACE, NAME, NEW, OLD, by_node, daemonset, node_of, settled, strategy
from tests.support.workspace import Workspace, image, is_ready, state

DONE = {"updatedNumberScheduled": 3, "numberAvailable": 3}


def images(space: Workspace) -> list[str]:
    """Return the running image of each node, sorted by node."""
    return [image(pod) for _, pod in sorted(by_node(space).items())]


def test_a_partition_for_the_first_pods_and_for_updates(space: Workspace):
    """Rows 7, 8 and 20: a number of nodes, or a percentage, rounded down; nodes get their pods by name.

    Then OnDelete (row 18): what users delete is updated, and nothing else.
    """
    space.apply(daemonset(IN_PLACE | {"partition": 2}, scaleStrategy={"partitionedScaling": True}))
    space.settled(NAME, desiredNumberScheduled=3, numberReady=1)
    assert sorted(by_node(space)) == ["node-0"]
    strategy(space, partition=0)
    settled(space, 3)

    strategy(space, partition=2)
    space.set_image(NEW, NAME)
    settled(space, 3, updatedNumberScheduled=1)
    assert images(space) == [OLD, OLD, NEW]
    strategy(space, partition="50%")
    settled(space, 3, updatedNumberScheduled=2)
    assert images(space) == [OLD, NEW, NEW]
    strategy(space, partition=0)
    settled(space, 3, **DONE)

    space.patch({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}, NAME)
    space.set_image(OLD, NAME)
    settled(space, 3, updatedNumberScheduled=0)
    space.kubectl("delete", "pod", by_node(space)["node-0"]["metadata"]["name"])
    settled(space, 3, updatedNumberScheduled=1)
    assert images(space) == [OLD, NEW, NEW]


def test_a_hook_is_asked_before_a_pod_goes(space: Workspace):
    """Row 29: one node at a time, and the status has the new generation."""
    hook = {"preDelete": {"labelsHandler": {"in-use": "true"}, "markPodNotReady": True}}
    manifest = daemonset(lifecycle=hook)
    manifest["spec"]["template"]["metadata"]["labels"]["in-use"] = "true"
    space.apply(manifest)
    before = settled(space, 3) and by_node(space)
    space.set_image(NEW, NAME)

    def asked() -> list[str]:
        return sorted(node_of(pod) for pod in space.pods.values() if state(pod) == "PreparingDelete")

    space.until(lambda: asked() == ["node-2"] and not is_ready(by_node(space)["node-2"]))
    space.settled(NAME, numberReady=2, updatedNumberScheduled=0)
    assert by_node(space).keys() == before.keys()
    assert asked() == ["node-2"]
    space.label(before["node-2"]["metadata"]["name"], "in-use-")
    space.until(lambda: asked() == ["node-1"])
    assert image(by_node(space)["node-2"]) == NEW
    space.json_patch({"op": "remove", "path": "/spec/lifecycle"}, name=NAME)
    settled(space, 3, **DONE)
