"""Facts about pods that all workloads share: predicates, launch priorities, serving pods, the default update order.

See common.md §5, §10, container-extras.md §B. Predicates run for every pod in every pass, so results are cached in the
pod's memo: for ten thousand pods that have not changed, a pass costs a dictionary look-up each.
"""

import functools
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from flotilla_common.api.core import Container, ContainerStatus, Pod
from flotilla_common.api.keys import (
    CONTAINER_BARRIER_ENV,
    IN_PLACE_GRACE,
    IN_PLACE_READY,
    IN_PLACE_STATE,
    LEGACY_IN_PLACE_GRACE,
    LEGACY_IN_PLACE_STATE,
    POD_READY,
)
from flotilla_common.api.numbers import integer
from flotilla_common.workload.lifecycle import NORMAL

_BARRIER_KEY = re.compile(r"p_(-?\d+)")


def barrier_key(container: Container) -> str | None:
    """Return the key in the container's barrier env, in any format; None without a barrier."""
    for env in container.env:
        if env.name == CONTAINER_BARRIER_ENV and env.value_from is not None and env.value_from.config_map_key_ref:
            return env.value_from.config_map_key_ref.key
    return None


def launch_priority(container: Container) -> int | None:
    """Return the integer in the container's barrier env (higher is earlier); None without a valid barrier."""
    match = _BARRIER_KEY.fullmatch(barrier_key(container) or "")
    return integer(match[1]) if match else None


T = TypeVar("T")
OrderKey = tuple[bool, int, bool, float, int, int, float, str]

_PHASE_RANKS = {"": 0, "Pending": 0, "Unknown": 1, "Running": 2}


def remembered(compute: Callable[[Pod], T]) -> Callable[[Pod], T]:
    """Cache the result of `compute`, which is never None, per version of a pod.

    The key contains the module: services in one process share the pods.
    """
    name = f"{compute.__module__}.{compute.__name__}"

    @functools.wraps(compute)
    def known(pod: Pod) -> T:
        value: T | None = pod.memo.get(name)
        if value is None:
            value = pod.memo[name] = compute(pod)
        return value

    return known


@remembered
def is_serving(pod: Pod) -> bool:
    """Return whether the pod is Running, Ready, and not in an in-place update (InPlaceUpdateReady absent or True)."""
    if not pod.ready or pod.status.phase != "Running":
        return False
    condition = pod.conditions.get(IN_PLACE_READY)
    return condition is None or condition.status == "True"


@remembered
def is_settled(pod: Pod) -> bool:
    """Return whether the in-place engine and the lifecycle surely have nothing to do on the pod.

    That is: state Normal, own readiness gates open, no grace period. False only means that a closer look is needed.
    """
    if pod.state not in ("", NORMAL):
        return False
    annotations = pod.metadata.annotations
    if IN_PLACE_GRACE in annotations or LEGACY_IN_PLACE_GRACE in annotations:
        return False
    if POD_READY in pod.gates and POD_READY not in pod.conditions:
        return False
    if IN_PLACE_READY not in pod.gates:
        return IN_PLACE_STATE not in annotations and LEGACY_IN_PLACE_STATE not in annotations
    condition = pod.conditions.get(IN_PLACE_READY)
    return condition is not None and (condition.status, condition.reason, condition.message) == ("True", "", "")


def phase_rank(pod: Pod) -> int:
    """Rank Pending before Unknown before Running; a pod without a phase has not been observed yet and is pending."""
    return _PHASE_RANKS.get(pod.status.phase, 0)


def max_restarts(statuses: Iterable[ContainerStatus]) -> int:
    """Return the highest restart count; 0 without statuses."""
    return max((status.restart_count for status in statuses), default=0)


def max_sidecar_restarts(pod: Pod) -> int:
    """Return the highest restart count over restartable init containers."""
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    return max_restarts(status for status in pod.status.init_container_statuses if status.name in sidecars)


def newest_first(moment: datetime | None) -> float:
    """Return a sort key: no time first, then later times before earlier ones."""
    return -math.inf if moment is None else -moment.timestamp()


@remembered
def default_order_key(pod: Pod) -> OrderKey:
    """Return a sort key by which the first pod is updated first; names break ties, so that the order is stable."""
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


class Serving:
    """The serving pods, without the ones that a pass takes."""

    def __init__(self, since: Iterable[datetime], needed: int) -> None:
        self._since = sorted(since)
        self._needed = needed

    def can_spare(self, since: datetime) -> bool:
        """Return whether enough others have been Ready for at least as long as a pod that became Ready at `since`."""
        return bisect_right(self._since, since) - 1 >= self._needed

    def take(self, since: datetime) -> None:
        """Remove a pod that became Ready at `since` from the count."""
        at = bisect_right(self._since, since) - 1
        if at >= 0 and self._since[at] == since:
            del self._since[at]
