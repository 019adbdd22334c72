"""Plans one pass over one WorkloadSpread, from snapshot to plan (workloadspread.md §8.2).

The order matters to clients: earlier pods get their subset, then costs are corrected, then the status reports it; a
subset is marked before its unschedulable pods are deleted.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mapping, merge_patch
from flotilla_common.api.kinds.workloadspread.book import stored
from flotilla_common.api.kinds.workloadspread.types import (
    DELETION_COST,
    FAKE_SUBSET,
    IGNORE_EXISTING,
    MATCHED,
    WORKLOAD_SPREAD,
    Matched,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from flotilla_common.api.resources import POD
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Chain, Event, Intent, Patch, PatchType, Plan, Reason, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder, refused
from flotilla_common.control.writes import delete_of, patch_of, write_status
from flotilla_topology.workloadspread.snapshot import Target, WorkloadSpreadSnapshot
from flotilla_topology.workloadspread.sorting import Cost, Sorted, changed_costs, metadata_of_patch, sort_pods
from flotilla_topology.workloadspread.status import Books, books_of, explain

COST = "cost"
"""The phase of writes of deletion costs."""


def plan(snapshot: WorkloadSpreadSnapshot, now: datetime) -> Plan:
    """Plan one pass. Invalid input in a WorkloadSpread becomes a reason and never raises.

    Pods of a deleted WorkloadSpread stay as they are.
    """
    spread = snapshot.spread
    if spread.metadata.deletion_timestamp is not None:
        return Plan()
    if snapshot.unfollowed:
        return Plan(reasons=(Reason(State.STUCK, "TargetNotFollowed", f"nothing is done: {snapshot.unfollowed}"),))
    if snapshot.unreadable:
        text = f"nothing is done: {snapshot.unreadable}"
        return msgspec.structs.replace(refused("InvalidTarget", text), errors=(("plan", text),))
    target = snapshot.target or Target()
    try:
        selected = _selected(snapshot)
        pods = sort_pods(selected, target.replicas)
        # Costs depend on which pods are the newest.
        priced = target.costed and target.latest is not None
        costs = list(changed_costs(spread.spec.subsets, target, pods)) if priced else []
        builder = PlanBuilder()
        books = books_of(spread, pods, target.replicas, now, builder.deadlines)
    except ValueError as error:
        return refused("InvalidSubset", f"nothing is done: {error}")
    builder.stage([*islice(_writes(spread, pods, costs), MAX_CHAINS_PER_PASS)])
    builder.stage(_deletes(spread, books)[:MAX_CHAINS_PER_PASS], stop_on_failure=False)
    builder.events += books.events
    explain(selected, pods, books, builder)
    status = _write(spread, books.status)
    return builder.plan(
        status=status,
        urgent_status=_is_urgent(spread.status, books.status),
        status_after_success=True,
        numbers={
            "replicas": target.replicas,
            "pods": sum(pod.active for pod in selected.pods),
            "adopted": len(pods.adopted),
            "unspread": sum(pod.active for pod in (*pods.of(FAKE_SUBSET), *pods.left_out)),
        },
        settled=not builder.stages and status is None,
    )


def _selected(snapshot: WorkloadSpreadSnapshot) -> WorkloadSpreadSnapshot:
    """Return the snapshot with only the pods that are spread. Raises ValueError if the filter cannot be read."""
    chosen = snapshot.spread.spec.target_filter
    if snapshot.target is None or snapshot.target.rests:
        return msgspec.structs.replace(snapshot, pods=())
    if chosen is None or chosen.selector is None:
        return snapshot
    selector = Selector.compile(chosen.selector)
    pods = [pod for pod in snapshot.pods if selector.empty or selector.matches(pod.metadata.labels)]
    return msgspec.structs.replace(snapshot, pods=pods)


def _writes(spread: WorkloadSpread, pods: Sorted, costs: Sequence[Cost]) -> Iterator[Chain]:
    """Yield one patch for each pod that lacks its subset or needs another cost."""
    adopted = {pod.metadata.uid: subset for pod, subset in pods.adopted}
    priced = {cost.pod.metadata.uid: cost for cost in costs}
    changed = [*(pod for pod, _ in pods.adopted), *(cost.pod for cost in costs)]
    for uid, pod in {pod.metadata.uid: pod for pod in changed}.items():
        yield (_patch(spread, pod, adopted.get(uid), priced.get(uid)),)


def _patch(spread: WorkloadSpread, pod: Pod, subset: str | None, cost: Cost | None) -> Patch:
    metadata: Json = {}
    causes: list[str] = []
    if subset is not None:
        causes.append(f"subset {subset}")
        if spread.metadata.annotations.get(IGNORE_EXISTING, "").lower() != "true":
            metadata |= metadata_of_patch(spread, subset)
        matched = Matched(name=spread.metadata.name, subset=subset)
        mark = {MATCHED: msgspec.json.encode(matched).decode()}
        metadata["annotations"] = mapping(metadata.get("annotations")) | mark
    if cost is not None:
        causes.append(f"deletion cost {cost.cost}")
        metadata["annotations"] = {**mapping(metadata.get("annotations")), DELETION_COST: str(cost.cost)}
    return patch_of(
        POD,
        pod.metadata,
        Intent.UPDATE,
        ", ".join(causes),
        body={"metadata": metadata},
        patch_type=PatchType.STRATEGIC,
        phase=COST,
        pods=(pod.metadata.name,),
        on_failure=_cost_failed(spread, cost) if cost is not None else None,
    )


def _cost_failed(spread: WorkloadSpread, cost: Cost) -> Event:
    mine, its = spread.metadata, cost.pod.metadata
    begin = f"WorkloadSpread {mine.namespace}/{mine.name} failed to patch deletion-cost annotation to {cost.cost}"
    message = f"{begin} for Pod {its.namespace}/{its.name} in subset {cost.subset}: "
    return Event("PatchPodDeletionCostFailed", message, warning=True)


def _deletes(spread: WorkloadSpread, books: Books) -> list[Chain]:
    """Delete unschedulable pods, once the stored status keeps their successors out of the subset."""
    marked = {subset.name for subset in spread.status.subset_statuses if not subset.schedulable}
    return [
        (
            delete_of(
                POD,
                pod.metadata,
                Intent.REPLACE,
                f"unschedulable in subset {subset}",
                on_failure=_delete_failed(spread, pod, subset),
            ),
        )
        for subset, stuck in books.stuck.items()
        if subset in marked
        for pod in stuck
    ]


def _delete_failed(spread: WorkloadSpread, pod: Pod, subset: str) -> Event:
    meta = spread.metadata
    place = f"{pod.metadata.namespace}/{pod.metadata.name} in Subset {subset}"
    # The spelling is the reference's.
    message = f"Failed to delete unschedulabe Pod {place} of WorkloadSpread {meta.namespace}/{meta.name}: "
    return Event("DeletePodFailed", message, warning=True)


def _is_urgent(stored: WorkloadSpreadStatus, status: WorkloadSpreadStatus) -> bool:
    """Report whether the status must be written at once.

    Clients wait for its generation, and the webhook for a changed number of places. The arrival of pods that the
    webhook admitted changes neither, and each write makes one of the webhook's writes conflict.
    """
    return status.observed_generation != stored.observed_generation or _places(status) != _places(stored)


def _places(status: WorkloadSpreadStatus) -> object:
    """Return the fields by which the webhook decides."""
    totals = [(subset.name, subset.schedulable) for subset in status.subset_statuses]
    books = status.versioned_subset_statuses.items()
    return totals, {
        version: [(one.name, one.missing_replicas, one.schedulable) for one in book] for version, book in books
    }


def _write(spread: WorkloadSpread, status: WorkloadSpreadStatus) -> Patch | None:
    """Return the write of the status, if it changes, on exactly the version read: the webhook writes it, too."""
    if status == spread.status:
        return None
    patch = merge_patch(_document(spread.status), _document(status))
    return write_status(WORKLOAD_SPREAD, spread.metadata, patch) if patch else None


def _document(status: WorkloadSpreadStatus) -> Json:
    """Return the status in its stored form."""
    document: Json = msgspec.to_builtins(status)
    document["subsetStatuses"] = list(map(stored, status.subset_statuses))
    versioned = status.versioned_subset_statuses
    document["versionedSubsetStatuses"] = {version: list(map(stored, book)) for version, book in versioned.items()}
    return document
