"""Which container a pod is starting, and which wait for their turn (container-extras.md §B)."""

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import LAUNCH_COMPLETED
from flotilla_common.workload.launch import launch_priority


def launch_story(pod: Pod) -> list[str]:
    """What is being started and what waits; empty without priorities, and once the last one is under way."""
    if pod.metadata.annotations.get(LAUNCH_COMPLETED) == "true":
        return []
    priorities = {one.name: launch_priority(one) for one in pod.spec.containers}
    ready = {status.name for status in pod.status.container_statuses if status.ready}
    pending = {name: rank for name, rank in priorities.items() if rank is not None and name not in ready}
    if not pending:
        return []
    highest = max(pending.values())
    now = [name for name, rank in pending.items() if rank == highest]
    later = sorted((rank, name) for name, rank in pending.items() if rank < highest)
    told = f"containers start in the order of their priorities: waiting for {_and(now)} (p_{highest}) to be ready"
    names = _and([name for _, name in reversed(later)])
    return [f"{told}; {names} {'comes' if len(later) == 1 else 'come'} after" if later else told]


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
