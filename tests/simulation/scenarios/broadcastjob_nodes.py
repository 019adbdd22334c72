"""BroadcastJobs whose nodes come, go and change (broadcastjob.md §4.3, §8)."""

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.broadcastjob import (
    LASTING,
    RemoveEndedPod,
    WaitRunning,
    broadcasting,
    broadcastjob,
    created,
    end_pod,
    end_pods,
    on,
    told,
)
from tests.simulation.scenarios.manifests import cordoned, relabelled, tainted
from tests.simulation.scenarios.node_steps import AddNode
from tests.simulation.scenarios.steps import Change, Create, Remove, RemovePod, Sleep, Wait

NEVER: Json = {"type": "Never"}
GREEDY: Json = {
    "containers": [{"name": "main", "image": "registry.test/shop:one", "resources": {"requests": {"cpu": "2"}}}]
}


def sized(node: str, cpu: str) -> Change:
    """Set the CPU of a node."""
    room = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return Change(patch={"status": {"allocatable": room}}, name=node, kind="Node", subresource="status")


SCENARIOS = (
    broadcasting(
        name="broadcast-to-nodes-to-come",
        given=(cordoned("node-3"), Create(document=broadcastjob(completionPolicy=NEVER)), told(succeeded=2)),
        when=(AddNode(name="node-4"), told(succeeded=3), cordoned("node-3", on=False), told(succeeded=4)),
        then=on("running", succeeded="1234"),
    ),
    broadcasting(
        name="broadcast-while-nodes-change",
        given=created(),
        when=(
            *(cordoned("node-1"), WaitRunning(nodes=("node-2", "node-3"))),
            *(tainted("node-2", "NoExecute"), WaitRunning(nodes=("node-3",))),
            *(cordoned("node-1", on=False), WaitRunning(nodes=("node-1", "node-3"))),
            *(Remove(name="node-3", kind="Node"), WaitRunning(nodes=("node-1",)), end_pod("node-1")),
        ),
        then=on(succeeded="1"),
    ),
    broadcasting(
        name="broadcast-while-a-node-is-replaced",
        given=created(parallelism=3),
        when=(
            *(AddNode(name="node-4"), Remove(name="node-1", kind="Node"), Wait(pods=2), AddNode(name="node-1")),
            *(WaitRunning(pods=3), *end_pods("node-2", "node-3"), told(succeeded=2), WaitRunning(pods=2)),
            *end_pods("node-1", "node-4"),
        ),
        then=on(succeeded="1234"),
    ),
    broadcasting(
        name="broadcast-where-there-is-room",
        given=(sized("node-1", "1"), Create(document=broadcastjob(exits=LASTING, pods=GREEDY)), told(active=2)),
        when=(sized("node-1", "4"), told(active=3), relabelled("node-2", ring="canary"), sized("node-3", "1")),
        then=on("running", running="12"),
    ),
    broadcasting(
        name="broadcast-again-where-users-delete-pods",
        given=created(),
        when=(
            *(end_pod("node-1"), told(succeeded=1), RemovePod(node="node-2"), Sleep(seconds=0.5)),
            *(RemoveEndedPod(node="node-1"), WaitRunning(pods=3), *end_pods("node-1", "node-2", "node-3")),
        ),
        then=on(succeeded="123"),
    ),
)
