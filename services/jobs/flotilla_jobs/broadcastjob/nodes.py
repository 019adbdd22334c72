"""The nodes that matter to a BroadcastJob: those that are to have a pod, and those that have one (broadcastjob.md
§4.3)."""

from collections.abc import Collection, Iterable

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.workload.placement import StrictPlacement, node_of


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of nodes and pods. Names of nodes are in order."""

    placed: dict[str, Pod]  # by node that is to have a pod: the one that it has
    waiting: list[str]  # nodes that are to have a pod and have none
    misfits: list[tuple[Pod, str]]  # pods on nodes that are not to have one any more, and why
    excluded: dict[str, list[str]]  # names of nodes that get no pod, by why
    duplicates: list[tuple[str, str]]  # (pod, node): further pods of a node

    @property
    def desired(self) -> int:
        """How many nodes are to have a pod."""
        return len(self.placed) + len(self.waiting)


def survey(nodes: Iterable[Node], pods: Collection[Pod], template: StrictPlacement) -> Survey:
    """Put pods and nodes together. A pod that is there says by itself which nodes it fits; a pod that is made for a
    node which does not exist belongs nowhere, and if it waits for that node, it would wait for ever."""
    found = Survey(placed={}, waiting=[], misfits=[], excluded={}, duplicates=[])
    by_node = _by_node(pods, found)
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        pod = by_node.pop(name, None)
        why_not = (template if pod is None else StrictPlacement.of_pod(pod)).why_not(node)
        if why_not:
            found.excluded.setdefault(why_not, []).append(name)
            if pod is not None and pod.metadata.deletion_timestamp is None:
                found.misfits.append((pod, why_not))
        elif pod is None:
            found.waiting.append(name)
        else:
            found.placed[name] = pod
    found.misfits.extend((pod, "does not exist any more") for pod in by_node.values() if _waits(pod))
    return found


def _waits(pod: Pod) -> bool:
    """The pod has not come to its node; one that has is collected with it."""
    return not pod.spec.node_name and pod.active


def _by_node(pods: Collection[Pod], found: Survey) -> dict[str, Pod]:
    """The last pod of each node; those before it are told of."""
    by_node: dict[str, Pod] = {}
    for pod in sorted(pods, key=lambda pod: pod.metadata.seniority):
        if node := node_of(pod):
            if node in by_node:
                found.duplicates.append((pod.metadata.name, node))
            by_node[node] = pod
    return by_node
