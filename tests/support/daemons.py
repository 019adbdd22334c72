"""Our DaemonSets for tests with kubectl, and checks of their pods."""

from collections.abc import Iterable, Mapping

from tests.support.workspace import Workspace, available, revision_of, state, terminating
from tests.testkit.documents import Json

NAME = "agent"
IN_PLACE: Json = {"rollingUpdateType": "InPlaceIfPossible"}
OLD, NEW = "nginx:alpine", "nginx:mainline"


def daemonset(
    strategy: Json | None = None, *, pod: Json | None = None, version: str = "v1beta1", **spec: object
) -> Json:
    """Return a DaemonSet of one nginx container. `strategy`: its rollingUpdate; `pod`: more of its pods' spec."""
    body = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "nginx", "image": OLD}], **(pod or {})}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "DaemonSet",
        "metadata": {"name": NAME},
        "spec": {
            "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": {"app": NAME}}, "spec": body},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": strategy or {}},
            **spec,
        },
    }


def started(space: Workspace, nodes: int, strategy: Json | None = None, **arguments: object) -> dict[str, Json]:
    """Apply a DaemonSet and wait until this many nodes have a ready pod; return the pods by node."""
    space.apply(daemonset(strategy, **arguments))
    settled(space, nodes)
    return by_node(space)


def settled(space: Workspace, nodes: int, **fields: object) -> Json:
    """Wait until this many nodes have a ready pod and the status has these fields; return the status."""
    return space.settled(NAME, desiredNumberScheduled=nodes, numberReady=nodes, **fields)


def strategy(space: Workspace, **changes: object) -> None:
    """Change the rollingUpdate; None takes a field out."""
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": changes}}}, NAME)


def node_of(pod: Json) -> str:
    """Return the node that the pod is on or created for."""
    if name := pod["spec"].get("nodeName", ""):
        return name
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]


def by_node(space: Workspace) -> dict[str, Json]:
    """Return the pods that are not terminating, one for each node."""
    staying = [pod for pod in space.pods.values() if not terminating(pod)]
    found = {node_of(pod): pod for pod in staying}
    assert len(found) == len(staying), sorted(map(node_of, staying))
    return found


def replaced(space: Workspace, pod: Json) -> None:
    """Wait until the pod's node has another one, which is ready."""
    uid = pod["metadata"]["uid"]

    def is_other(found: Json) -> bool:
        return node_of(found) == node_of(pod) and found["metadata"]["uid"] != uid and available(found)

    space.until(lambda: any(map(is_other, space.pods.values())))


def serving(pods: Mapping[str, Json]) -> set[str]:
    """Return the nodes with an available pod."""
    return {node_of(pod) for pod in pods.values() if available(pod)}


def crowded(pods: Iterable[Json]) -> set[str]:
    """Return the nodes with two pods of one revision that are neither terminating nor finished."""
    seen: set[tuple[str, str]] = set()
    found: set[str] = set()
    for pod in pods:
        if terminating(pod) or pod["status"].get("phase") == "Failed" or state(pod) == "PreparingDelete":
            continue
        place = (node_of(pod), revision_of(pod))
        if place in seen:
            found.add(node_of(pod))
        seen.add(place)
    return found
