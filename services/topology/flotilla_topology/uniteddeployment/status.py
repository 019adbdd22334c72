"""Computes the status of a UnitedDeployment, and explains it subset by subset (uniteddeployment.md §12)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.kinds.uniteddeployment.types import (
    FAILURE,
    PROVISIONED,
    RESERVED_LABEL,
    SUBSET_UPDATED,
    UPDATED,
    Subset,
    SubsetStatus,
    UnitedDeployment,
    UnitedDeploymentStatus,
)
from flotilla_common.api.meta import Condition
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import first_names, pods_word
from flotilla_common.workload.revisions import RevisionChoice
from flotilla_topology.uniteddeployment.children import Child, Claimed, Family
from flotilla_topology.uniteddeployment.provision import Subsets
from flotilla_topology.uniteddeployment.schedulability import CREATED, JOINED, Schedulability, changed


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The findings and decisions of a pass."""

    revisions: RevisionChoice
    family: Family
    schedulability: Mapping[str, Schedulability]  # by subset; empty under the Fixed strategy
    replicas: Mapping[str, int]  # allocated, by subset
    partitions: Mapping[str, int]  # effective, by subset
    moves: bool = False  # pods are being given up in favour of others, or will be


def with_new_subsets(owner: UnitedDeployment, now: datetime) -> UnitedDeployment:
    """Return the object with a status for each subset of the topology.

    A subset that joins a running UnitedDeployment in reservation mode begins marked, so that its first pods are tried
    before others are given up (§6 step 3).
    """
    stored = owner.status.subset_statuses
    begins_marked = bool(stored) and owner.spec.reserves
    known = {subset.name for subset in stored}
    added = [
        SubsetStatus(name=subset.name, conditions=[changed(None, False, CREATED, JOINED, now)] if begins_marked else [])
        for subset in owner.spec.topology.subsets
        if subset.name not in known
    ]
    if not added:
        return owner
    status = msgspec.structs.replace(owner.status, subset_statuses=[*stored, *added])
    return msgspec.structs.replace(owner, status=status)


def status_of(owner: UnitedDeployment, selector: Selector, outcome: Outcome, now: datetime) -> UnitedDeploymentStatus:
    """Return the desired status of the object."""
    children = outcome.family.all
    reserved = {
        child.name: checked.reserved for child in children if (checked := outcome.schedulability.get(child.name))
    }
    replicas = sum(child.workload.status.replicas for child in children) - sum(reserved.values())
    updated_ready = sum(child.updated_ready for child in children)
    newest = outcome.revisions.update.metadata.name
    current = owner.status.current_revision or outcome.revisions.current.metadata.name
    label_selector = str(selector)
    if owner.spec.reserves:
        label_selector += f",{RESERVED_LABEL}=false"
    return UnitedDeploymentStatus(
        observed_generation=owner.metadata.generation,
        replicas=replicas,
        ready_replicas=sum(child.workload.status.ready_replicas for child in children),
        updated_replicas=sum(len(child.updated) for child in children),
        updated_ready_replicas=updated_ready,
        reserved_pods=sum(reserved.values()),
        collision_count=outcome.revisions.collision_count or owner.status.collision_count,
        current_revision=newest if updated_ready >= replicas else current,
        updated_revision=newest,
        subset_statuses=_subset_statuses(owner, outcome, reserved),
        conditions=_conditions(owner, outcome, now),
        label_selector=label_selector,
    )


def _subset_statuses(owner: UnitedDeployment, outcome: Outcome, reserved: Mapping[str, int]) -> list[SubsetStatus]:
    """Return the statuses of the topology's subsets and of subsets that still have a child, in stored order."""
    children = {child.name: child for child in outcome.family.all}
    kept = {subset.name for subset in owner.spec.topology.subsets} | children.keys()
    statuses: list[SubsetStatus] = []
    for stored in owner.status.subset_statuses:
        child, checked = children.get(stored.name), outcome.schedulability.get(stored.name)
        if stored.name in kept:
            condition = checked.condition if checked is not None else None
            statuses.append(
                SubsetStatus(
                    name=stored.name,
                    replicas=outcome.replicas.get(stored.name, 0),
                    ready_replicas=child.workload.status.ready_replicas if child is not None else 0,
                    partition=outcome.partitions.get(stored.name, 0),
                    reserved_pods=reserved.get(stored.name, 0),
                    conditions=stored.conditions if condition is None else [condition],
                )
            )
    return statuses


def _conditions(owner: UnitedDeployment, outcome: Outcome, now: datetime) -> list[Condition]:
    conditions = [condition for condition in owner.status.conditions if condition.type != FAILURE]
    newest = outcome.revisions.update.metadata.name
    done = outcome.revisions.current.metadata.name == newest
    verb = "updated" if done else "updating"
    moment = now.replace(microsecond=0)
    updated = Condition(
        type=UPDATED,
        status="True" if done else "False",
        last_transition_time=moment,
        reason=f"UnitedDeploymentRevision{verb.capitalize()}",
        message=f"{verb} to revision {newest}",
    )
    conditions = _set(conditions, updated)
    if owner.spec.topology.subsets:  # created by this pass or an earlier one: the condition never becomes False
        conditions = _set(conditions, Condition(type=PROVISIONED, status="True", last_transition_time=moment))
    return _set(conditions, Condition(type=SUBSET_UPDATED, status="True", last_transition_time=moment))


def _set(conditions: Sequence[Condition], new: Condition) -> list[Condition]:
    """Put the condition at the end, unless one with its status exists already."""
    if any((condition.type, condition.status) == (new.type, new.status) for condition in conditions):
        return list(conditions)
    return [*(condition for condition in conditions if condition.type != new.type), new]


def explain(subsets: Subsets, claims: Mapping[str, Claimed], builder: PlanBuilder) -> None:
    """Add a reason for each subset that waits."""
    for claimed in claims.values():
        for workload in claimed.nameless:
            text = f"{workload.metadata.name} belongs to the UnitedDeployment but names no subset"
            builder.reason(State.STUCK, "ChildWithoutSubset", text, [workload])
    _explain_totals(subsets, builder)
    for subset in subsets.owner.spec.topology.subsets:
        child = subsets.family.of(subset.name)
        _explain_stuck_pods(subsets, subset, builder)
        if child is not None:
            _explain_progress(subsets, child, builder)


def _explain_totals(subsets: Subsets, builder: PlanBuilder) -> None:
    """Add a reason for replicas that fit into no subset."""
    total, allocated = subsets.owner.spec.replicas, sum(subsets.replicas.values())
    if allocated < total:
        text = f"{total - allocated} of {total} replicas fit into no subset: all are at maxReplicas or unschedulable"
        builder.reason(State.STUCK, "SubsetsFull", text, symptom=True)


def _explain_stuck_pods(subsets: Subsets, subset: Subset, builder: PlanBuilder) -> None:
    checked = subsets.schedulability.get(subset.name)
    if checked is None or not checked.unschedulable:
        return
    if checked.waiting:
        names = ", ".join(first_names(checked.waiting))
        lost = f"subset {subset.name}: no node for {pods_word(len(checked.waiting))}"
        text = f"{lost}: {names}; replaced in other subsets"
        builder.reason(State.STUCK, "SubsetUnschedulable", text, checked.waiting, symptom=True)
    else:
        text = f"subset {subset.name} gets no more pods for now: it had unschedulable pods"
        builder.reason(State.NOTE, "SubsetUnschedulable", text)


def _explain_progress(subsets: Subsets, child: Child, builder: PlanBuilder) -> None:
    name, kind = child.metadata.name, child.kind.name
    wanted, ready = subsets.replicas[child.name], child.workload.status.ready_replicas
    partition = subsets.partitions[child.name] if child.kind.partitioned else 0
    behind = child.workload.status.replicas - len(child.updated)
    if child.on_delete and behind > 0:
        text = f"subset {child.name}: {pods_word(behind)} of older revisions must be deleted manually: type is OnDelete"
        builder.reason(State.HELD, "OnDelete", text, [child])
    elif behind > partition:
        text = f"subset {child.name}: {pods_word(behind - partition)} of {kind} {name} still to be updated"
        builder.reason(State.WAITING, "WaitingForSubset", text, [child])
    elif ready < wanted:
        text = f"subset {child.name}: {ready} of {wanted} pods of {kind} {name} are ready"
        builder.reason(State.WAITING, "WaitingForSubset", text, [child])
    elif behind > 0:
        text = f"subset {child.name} keeps {pods_word(behind)} on old revisions: its partition is {partition}"
        builder.reason(State.HELD, "Partition", text, [child])
