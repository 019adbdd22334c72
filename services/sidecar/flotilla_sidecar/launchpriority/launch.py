"""Derives from a pod how far the start of its containers has come (container-extras.md §B3).

A container cannot be created before its key exists, and keys are added from the highest priority downwards and never
removed. So a container that has been created proves that its key exists, and the keys of all higher priorities, too.
"""

from collections.abc import Mapping

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import LAUNCH_COMPLETED
from flotilla_common.control.plan import Frozen
from flotilla_common.workload.predicates import barrier_key, launch_priority

GOOD_SECONDS = 20.0
"""The time for which an answer about a ConfigMap is valid: a user may have deleted it."""


def is_launching(pod: Pod) -> bool:
    """Report whether some containers wait for their turn, or completion is not yet recorded on the pod."""
    if pod.metadata.annotations.get(LAUNCH_COMPLETED) == "true" or not pod.active:
        return False
    return any(barrier_key(container) is not None for container in pod.spec.containers)


def priorities(pod: Pod) -> Mapping[str, int]:
    """Return the priorities of the containers that have a barrier, by name. A foreign key counts as 0."""
    return {one.name: launch_priority(one) or 0 for one in pod.spec.containers if barrier_key(one) is not None}


def pending(pod: Pod) -> list[int]:
    """Return the priorities of containers that are not ready, the lowest first."""
    ready = {status.name for status in pod.status.container_statuses if status.ready}
    return sorted(rank for name, rank in priorities(pod).items() if name not in ready)


def is_proven(pod: Pod, rank: int) -> bool:
    """Report whether a container of this or a lower priority has been created, so that the key exists."""
    created = {status.name for status in pod.status.container_statuses if status.container_id}
    return any(other <= rank for name, other in priorities(pod).items() if name in created)


def key_of(rank: int) -> str:
    """Return the key that containers of this priority wait for."""
    return f"p_{rank}"


def barrier_name(pod: Pod) -> str:
    """Return the name of the ConfigMap with the keys, in the pod's namespace."""
    return f"{pod.metadata.name}-barrier"


class Barrier(Frozen):
    """The apiserver's answer about the ConfigMap."""

    uid: str = ""  # empty: it does not exist
    version: str = ""
    keys: frozenset[str] = frozenset()
    earlier: bool = False  # belongs to an earlier pod of this name, and is about to be collected
    foreign: bool = False  # belongs to another owner that uses the same name
    going: bool = False  # being deleted
