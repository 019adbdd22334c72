"""What a pod is worth right now, and which one is updated first (common.md §5).

These run for every pod of every pass. The predicates only look at facts that `Pod` caches, and the order key is itself
kept on the pod, so sorting ten thousand unchanged pods costs a dictionary look-up each.
"""

import math
from collections.abc import Iterable
from datetime import datetime

from flotilla_common.api.core import ContainerStatus, Pod

OrderKey = tuple[bool, int, bool, float, int, int, float, str]

_ORDER_KEY = "default_order_key"
_PHASE_RANKS = {"": 0, "Pending": 0, "Unknown": 1, "Running": 2}


def phase_rank(pod: Pod) -> int:
    """Pending before Unknown before Running; a pod without a phase has not been seen by anyone yet and is pending."""
    return _PHASE_RANKS.get(pod.status.phase, 0)


def max_restarts(statuses: Iterable[ContainerStatus]) -> int:
    """The highest restart count; 0 without statuses."""
    return max((status.restart_count for status in statuses), default=0)


def max_sidecar_restarts(pod: Pod) -> int:
    """The highest restart count over restartable init containers."""
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    return max_restarts(status for status in pod.status.init_container_statuses if status.name in sidecars)


def newest_first(moment: datetime | None) -> float:
    """A sort key: no time before all others, then the later before the earlier."""
    return -math.inf if moment is None else -moment.timestamp()


def default_order_key(pod: Pod) -> OrderKey:
    """Sorts pods so that the first is updated first; ties go by name, so that the order is the same in every pass."""
    key: OrderKey | None = pod.memo.get(_ORDER_KEY)
    if key is None:
        key = pod.memo[_ORDER_KEY] = _order_key(pod)
    return key


def _order_key(pod: Pod) -> OrderKey:
    ready = pod.ready
    return (
        bool(pod.spec.node_name),
        phase_rank(pod),
        ready,
        newest_first(pod.ready_since) if ready else 0.0,
        -max_restarts(pod.status.container_statuses),
        -max_sidecar_restarts(pod),
        newest_first(pod.metadata.creation_timestamp),
        pod.metadata.name,
    )
