"""Computes the deletion costs of pods, so that controllers remove pods of the last subset first.

See workloadspread.md §8.4.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.workloadspread.book import cost_of_place, limit_of
from flotilla_common.api.kinds.workloadspread.types import DELETION_COST, FAKE_SUBSET, UNLIMITED, Subset
from flotilla_common.api.moments import EARLIEST
from flotilla_topology.workloadspread.snapshot import Target
from flotilla_topology.workloadspread.sorting import Sorted

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class Cost(msgspec.Struct, frozen=True):
    """The deletion cost that a pod should have."""

    pod: Pod
    subset: str
    cost: int


def changed_costs(subsets: Sequence[Subset], target: Target, pods: Sorted) -> Iterator[Cost]:
    """Yield the active pods whose cost must change. Raises ValueError if a limit cannot be read."""
    for version, by_subset in pods.by_version.items():
        for subset, cost, priced in _costs(subsets, target, version, by_subset):
            text = str(cost)
            yield from (
                Cost(pod, subset, cost) for pod in priced if pod.metadata.annotations.get(DELETION_COST) != text
            )


def _costs(
    subsets: Sequence[Subset], target: Target, version: str, by_subset: Mapping[str, Sequence[Pod]]
) -> Iterator[tuple[str, int, Sequence[Pod]]]:
    """Yield the active pods of one version by subset and cost."""
    count = len(subsets)
    reverse = target.ordered and version != target.latest
    for index, subset in enumerate(subsets):
        place = count - 1 - index if reverse else index
        active = [pod for pod in by_subset.get(subset.name, ()) if pod.active]
        limit = limit_of(subset, target.replicas)
        surplus = max(len(active) - limit, 0) if limit != UNLIMITED else 0
        if surplus:
            active.sort(key=most_deletable)
            yield subset.name, -100 * (place + 1), active[:surplus]
        yield subset.name, cost_of_place(place, count), active[surplus:]
    yield FAKE_SUBSET, -100 * (count + 1), [pod for pod in by_subset.get(FAKE_SUBSET, ()) if pod.active]


def most_deletable(pod: Pod) -> tuple[object, ...]:
    """Return a sort key that puts the most dispensable pods first."""
    ready_since = pod.ready_since
    created = pod.metadata.creation_timestamp or EARLIEST
    restarts = max((one.restart_count for one in pod.status.container_statuses), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 2),
        pod.ready,
        -ready_since.timestamp() if ready_since is not None else 0.0,
        -restarts,
        -created.timestamp(),
        pod.metadata.name,  # arbitrary, but the same in every pass
    )
