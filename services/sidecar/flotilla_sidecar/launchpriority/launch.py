"""How far the start of a pod's containers has come, as the pod itself tells (container-extras.md §B3).

A container cannot be created before its key is there, and keys are added from the highest priority downwards and never
taken away. So a container that has been created proves that its key is there, and those of all higher priorities, too.
"""

from collections.abc import Mapping

from flotilla_common.api.core import Container, Pod
from flotilla_common.api.keys import LAUNCH_COMPLETED
from flotilla_common.workload.launch import barrier_key, launch_priority


def is_launching(pod: Pod) -> bool:
    """Some of its containers wait for their turn, or nobody has written down yet that all have had it."""
    if pod.metadata.annotations.get(LAUNCH_COMPLETED) == "true" or not pod.active:
        return False
    return any(barrier_key(container) is not None for container in pod.spec.containers)


def priorities(pod: Pod) -> Mapping[str, int]:
    """The priorities of the containers that have a barrier, by name. A key that is none of ours counts as 0."""
    return {one.name: _priority(one) for one in pod.spec.containers if barrier_key(one) is not None}


def pending(pod: Pod) -> list[int]:
    """The priorities of containers that are not ready, the lowest first."""
    ready = {status.name for status in pod.status.container_statuses if status.ready}
    return sorted(rank for name, rank in priorities(pod).items() if name not in ready)


def is_proven(pod: Pod, rank: int) -> bool:
    """A container of this priority or a lower one has been created, so the key is there."""
    created = {status.name for status in pod.status.container_statuses if status.container_id}
    return any(other <= rank for name, other in priorities(pod).items() if name in created)


def key_of(rank: int) -> str:
    """The key that containers of this priority wait for."""
    return f"p_{rank}"


def barrier_name(pod: Pod) -> str:
    """The name of the ConfigMap with the keys, in the pod's namespace."""
    return f"{pod.metadata.name}-barrier"


def _priority(container: Container) -> int:
    return launch_priority(container) or 0
