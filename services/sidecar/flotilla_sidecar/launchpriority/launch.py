"""Derives from a pod how far the start of its containers has come (container-extras.md §B3).

A container cannot be created before its key exists, and keys are added from the highest priority downwards and never
removed. So a container that has been created proves that its key exists, and the keys of all higher priorities, too.
"""

from collections.abc import Mapping

from flotilla_common.api.core import Container, Pod
from flotilla_common.api.keys import LAUNCH_COMPLETED
from flotilla_common.workload.launch import barrier_key, launch_priority


def is_launching(pod: Pod) -> bool:
    """Report whether some containers wait for their turn, or completion is not yet recorded on the pod."""
    if pod.metadata.annotations.get(LAUNCH_COMPLETED) == "true" or not pod.active:
        return False
    return any(barrier_key(container) is not None for container in pod.spec.containers)


def priorities(pod: Pod) -> Mapping[str, int]:
    """Return the priorities of the containers that have a barrier, by name. A foreign key counts as 0."""
    return {one.name: _priority(one) for one in pod.spec.containers if barrier_key(one) is not None}


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


def _priority(container: Container) -> int:
    return launch_priority(container) or 0
