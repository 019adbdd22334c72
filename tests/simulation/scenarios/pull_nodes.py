"""Nodes that come, go and fall silent while images are pulled (imagepull.md §4, §5.4)."""

from tests.simulation.scenarios.node_steps import AddNode, SetNode, StartAgent, StopAgent, WaitTag
from tests.simulation.scenarios.pull_manifests import ONE, Pulled, everywhere, job
from tests.simulation.scenarios.pulls import DONE, SINGLE, SLOW, pulling
from tests.simulation.scenarios.steps import Create, LoseNode, Remove, ReturnNodes, Sleep, WaitGone

PAIR = DONE | {"desired": 2, "succeeded": 2}
TO_PODS = {"matchLabels": {"app": "web"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {"nodeName": "node-2", "containers": [{"name": "main", "image": "registry.test/shop:one"}]},
}

SCENARIOS = (
    pulling(
        name="node-joins-in-the-middle-of-a-pull",
        given=(
            Remove(name="node-3", kind="Node"),
            WaitGone(name="node-3", kind="NodeImage"),
            SLOW,
            Create(document=job(completion={"type": "Never"})),
            WaitTag(node="node-1", phase="Waiting"),
        ),
        at_rest=False,
        when=(AddNode(name="node-3"),),
        then=Pulled(nodes=everywhere(ONE), completed=False, status={"desired": 3, "succeeded": 3}),
    ),
    pulling(
        name="node-removed-in-the-middle-of-its-pull",
        given=(SLOW, Create(document=job("node-1", "node-2")), WaitTag(node="node-1", phase="Waiting")),
        at_rest=False,
        when=(Remove(name="node-1", kind="Node"), StopAgent(node="node-1")),
        then=Pulled(nodes={"node-2": {ONE: "Succeeded"}}, status=SINGLE),
    ),
    pulling(
        name="node-removed-and-back-under-its-name",
        given=(Create(document=job("node-1", completion={"type": "Never"})), WaitTag(node="node-1", phase="Succeeded")),
        when=(
            Remove(name="node-1", kind="Node"),
            WaitGone(name="node-1", kind="NodeImage"),
            AddNode(name="node-1"),
            WaitTag(node="node-1", phase="Succeeded"),
        ),
        then=Pulled(nodes=everywhere(ONE, nodes=1), completed=False, status={"desired": 1, "succeeded": 1}),
    ),
    pulling(
        name="agent-silent-with-a-pull-before-it",
        given=(StopAgent(node="node-1"), Create(document=job("node-1", "node-2", parallelism=2))),
        at_rest=False,
        when=(StartAgent(node="node-1"),),
        then=Pulled(nodes=everywhere(ONE, nodes=2), status=PAIR),
    ),
    pulling(
        name="pulled-where-pods-are",
        given=(Create(document=POD), Sleep(seconds=1.0)),
        when=(Create(document=job(podSelector=TO_PODS)),),
        then=Pulled(nodes={"node-2": {ONE: "Succeeded"}}, status=SINGLE),
    ),
    pulling(
        name="node-lost-and-back-with-a-pull-before-it",
        given=(SetNode(node="node-2"), Create(document=POD), Sleep(seconds=1.0)),
        when=(LoseNode(owner=""), Create(document=job("node-2")), Sleep(seconds=1.0), ReturnNodes()),
        then=Pulled(nodes={"node-2": {ONE: "Succeeded"}}, status=SINGLE),
    ),
)
