"""Chooses the pods to delete first when a CloneSet shrinks (cloneset.md §4.7).

Pods of the old revision precede those of the new one up to the partition. Within a group the cheapest loss
goes first: pods that are not scheduled, not running or not available, then lower deletion cost, then crowded nodes or
topology domains, then the youngest.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.numbers import integer
from flotilla_common.workload.predicates import max_restarts, newest_first, phase_rank

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
HOSTNAME = "kubernetes.io/hostname"
_COST_LIMIT = 2**31  # the annotation is an int32

NodeLabels = Mapping[str, Mapping[str, str]]
Key = tuple[float, ...]


def pods_to_delete(
    new: Sequence[Pod],
    old: Sequence[Pod],
    count: int,
    old_count: int,
    *,
    unavailable: Collection[str],
    topology_keys: Sequence[str] = (),
    node_labels: NodeLabels | None = None,
) -> list[Pod]:
    """Choose `count` pods to delete, the most dispensable first, up to `old_count` of them from the old group.

    `unavailable` holds the uids of pods that are not available; `topology_keys` are the template's spread constraints.
    """
    from_old = min(count, old_count, len(old))
    nodes = node_labels or {}
    return [
        *_first(old, from_old, unavailable, topology_keys, nodes),
        *_first(new, min(count - from_old, len(new)), unavailable, topology_keys, nodes),
    ]


def deletion_cost(pod: Pod) -> int:
    """Return the pod's deletion cost; 0 unless the annotation is a canonical int32."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    cost = integer(text)
    if cost is None or str(cost) != text:
        return 0
    return cost if -_COST_LIMIT <= cost < _COST_LIMIT else 0


def _first(
    group: Sequence[Pod], count: int, unavailable: Collection[str], topology_keys: Sequence[str], nodes: NodeLabels
) -> list[Pod]:
    if count <= 0:
        return []
    if count >= len(group):
        return list(group)
    ranks = _spread_ranks(group, topology_keys, nodes) if topology_keys else _node_ranks(group)
    return sorted(group, key=lambda pod: (*_key(pod, ranks, pod.metadata.uid not in unavailable), pod.metadata.name))[
        :count
    ]


def _key(pod: Pod, ranks: Mapping[str, float], available: bool) -> Key:
    """Return the sort key of a pod; smaller is deleted first."""
    return (
        bool(pod.spec.node_name),
        phase_rank(pod),
        available,
        pod.ready,
        deletion_cost(pod),
        -ranks.get(pod.metadata.uid, 0.0),
        newest_first(pod.ready_since) if pod.ready else 0.0,
        -max_restarts(pod.status.container_statuses),
        newest_first(pod.metadata.creation_timestamp),
    )


def _node_ranks(group: Sequence[Pod]) -> dict[str, float]:
    """Rank pods by how crowded their node is: of k pods on a node the first gets k - 1, the last 0."""
    ranks: dict[str, float] = {}
    for members in _domains(group, lambda pod: pod.spec.node_name).values():
        ranks |= _falling(members, {}, len(members) - 1, 1.0)
    return ranks


def _spread_ranks(group: Sequence[Pod], topology_keys: Sequence[str], nodes: NodeLabels) -> dict[str, float]:
    """Rank pods by how crowded their topology domains are, summed over the constraints."""
    same_node = _node_ranks(group)
    ranks: dict[str, float] = defaultdict(float)
    for key in topology_keys:
        domains = _domains(group, lambda pod, key=key: nodes.get(pod.spec.node_name, {}).get(key, ""))
        weight = math.log(len(domains) + 2)
        for members in domains.values():
            earlier = {} if key == HOSTNAME else same_node
            for uid, rank in _falling(members, earlier, len(members), weight).items():
                ranks[uid] += rank
    return ranks


def _domains(group: Sequence[Pod], domain: Callable[[Pod], str]) -> dict[str, list[Pod]]:
    domains: dict[str, list[Pod]] = defaultdict(list)
    for pod in group:
        name = domain(pod)
        if name:
            domains[name].append(pod)
    return domains


def _falling(members: Sequence[Pod], ranks: Mapping[str, float], first: int, weight: float) -> dict[str, float]:
    ordered = sorted(members, key=lambda pod: (*_key(pod, ranks, False), pod.metadata.name))
    return {pod.metadata.uid: (first - position) * weight for position, pod in enumerate(ordered)}
