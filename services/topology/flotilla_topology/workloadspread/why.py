"""Explains why pods of a WorkloadSpread are where they are: first its workload, then each subset."""

from flotilla_common.api.kinds.workloadspread.book import limit_of
from flotilla_common.api.kinds.workloadspread.targets import JOBS, group_kind
from flotilla_common.api.kinds.workloadspread.types import FAKE_SUBSET, UNLIMITED, Subset
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import first_names, pods_word
from flotilla_topology.workloadspread.snapshot import Target, WorkloadSpreadSnapshot
from flotilla_topology.workloadspread.sorting import Sorted
from flotilla_topology.workloadspread.status import Books


def give_reasons(snapshot: WorkloadSpreadSnapshot, pods: Sorted, books: Books, builder: PlanBuilder) -> None:
    """Add reasons for missing pods and for subsets that do not grow. `snapshot` has only the pods that are spread."""
    for text in pods.unreadable:
        builder.reason(State.STUCK, "InvalidSubset", text)
    reference = snapshot.spread.spec.target_ref
    if snapshot.target is None:
        builder.reason(State.WAITING, "WaitingForTarget", f"{reference.kind} {reference.name} does not exist")
        return
    there, wanted = sum(pod.active for pod in snapshot.pods), snapshot.target.replicas
    if there < wanted and group_kind(reference) != JOBS:  # the last pods of a Job are fewer
        text = f"{reference.kind} {reference.name} has {there} of {pods_word(wanted)}"
        builder.reason(State.WAITING, "WaitingForPods", text, [reference.name])
    for subset in snapshot.spread.spec.subsets:
        _give_node_trouble(subset.name, books, builder)
        _give_room(subset, snapshot.target, pods, builder)
    unspread = [pod for pod in pods.of(FAKE_SUBSET) if pod.active]
    if unspread:
        text = f"{pods_word(len(unspread))} without a subset: deleted first"
        builder.reason(State.NOTE, "PodsWithoutSubset", text, unspread)
    left_out = [pod for pod in pods.left_out if pod.active]
    if left_out:
        text = f"{pods_word(len(left_out))} left alone: no subset had room"
        builder.reason(State.NOTE, "PodsLeftOut", text, left_out)


def _give_node_trouble(subset: str, books: Books, builder: PlanBuilder) -> None:
    stuck = books.stuck.get(subset, ())
    entry = next(one for one in books.status.subset_statuses if one.name == subset)
    if stuck:
        names = ", ".join(first_names(stuck))
        text = f"subset {subset}: no node for {pods_word(len(stuck))}: {names}; replaced in other subsets"
        builder.reason(State.STUCK, "SubsetUnschedulable", text, stuck, symptom=True)
    elif not entry.schedulable:
        text = f"subset {subset} gets no more pods for now: it had unschedulable pods"
        builder.reason(State.NOTE, "SubsetUnschedulable", text)


def _give_room(subset: Subset, target: Target, pods: Sorted, builder: PlanBuilder) -> None:
    limit, there = limit_of(subset, target.replicas), sum(pod.active for pod in pods.of(subset.name))
    if limit == UNLIMITED or there < limit:
        return
    if there > limit:
        text = f"subset {subset.name} has {pods_word(there - limit)} more than its {limit}: deleted first"
        builder.reason(State.NOTE, "SubsetOverfull", text)
    elif limit:
        text = f"subset {subset.name} has its {pods_word(limit)}: others go to later subsets"
        builder.reason(State.NOTE, "SubsetFull", text)
