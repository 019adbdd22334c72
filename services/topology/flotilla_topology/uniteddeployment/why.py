"""Explains the state of a UnitedDeployment subset by subset, and names the children to look at."""

from collections.abc import Mapping

from flotilla_common.api.kinds.uniteddeployment.types import Subset
from flotilla_common.control.plan import Reason, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import first_names, pods_word
from flotilla_topology.uniteddeployment.children import Child
from flotilla_topology.uniteddeployment.claiming import Claimed
from flotilla_topology.uniteddeployment.provision import Subsets


def refusal(code: str, message: str) -> Reason:
    """Return the reason of a UnitedDeployment whose spec must change before anything can be done."""
    return Reason(State.STUCK, code, message)


def give_reasons(subsets: Subsets, claims: Mapping[str, Claimed], builder: PlanBuilder) -> None:
    """Add a reason for each subset that waits."""
    for claimed in claims.values():
        for workload in claimed.nameless:
            text = f"{workload.metadata.name} belongs to the UnitedDeployment but names no subset"
            builder.reason(State.STUCK, "ChildWithoutSubset", text, [workload])
    _give_totals(subsets, builder)
    for subset in subsets.owner.spec.topology.subsets:
        child = subsets.family.of(subset.name)
        _give_stuck_pods(subsets, subset, builder)
        if child is not None:
            _give_progress(subsets, child, builder)


def _give_totals(subsets: Subsets, builder: PlanBuilder) -> None:
    """Add a reason for replicas that fit into no subset."""
    total, allocated = subsets.owner.spec.replicas, sum(subsets.replicas.values())
    if allocated < total:
        text = f"{total - allocated} of {total} replicas fit into no subset: all are at maxReplicas or unschedulable"
        builder.reason(State.STUCK, "SubsetsFull", text, symptom=True)


def _give_stuck_pods(subsets: Subsets, subset: Subset, builder: PlanBuilder) -> None:
    found = subsets.found.get(subset.name)
    if found is None or not found.unschedulable:
        return
    if found.waiting:
        names = ", ".join(first_names(found.waiting))
        lost = f"subset {subset.name}: no node for {pods_word(len(found.waiting))}"
        text = f"{lost}: {names}; replaced in other subsets"
        builder.reason(State.STUCK, "SubsetUnschedulable", text, found.waiting, symptom=True)
    else:
        text = f"subset {subset.name} gets no more pods for now: it had unschedulable pods"
        builder.reason(State.NOTE, "SubsetUnschedulable", text)


def _give_progress(subsets: Subsets, child: Child, builder: PlanBuilder) -> None:
    name, kind = child.metadata.name, child.kind.name
    wanted, ready = subsets.replicas[child.name], child.workload.status.ready_replicas
    held = subsets.partitions[child.name] if child.kind.partitioned else 0
    behind = child.workload.status.replicas - len(child.updated)
    if child.on_delete and behind > 0:
        text = f"subset {child.name}: {pods_word(behind)} of older revisions must be deleted manually: type is OnDelete"
        builder.reason(State.HELD, "OnDelete", text, [child])
    elif behind > held:
        text = f"subset {child.name}: {pods_word(behind - held)} of {kind} {name} still to be updated"
        builder.reason(State.WAITING, "WaitingForSubset", text, [child])
    elif ready < wanted:
        text = f"subset {child.name}: {ready} of {wanted} pods of {kind} {name} are ready"
        builder.reason(State.WAITING, "WaitingForSubset", text, [child])
    elif behind > 0:
        text = f"subset {child.name} keeps {pods_word(behind)} on old revisions: its partition is {held}"
        builder.reason(State.HELD, "Partition", text, [child])
