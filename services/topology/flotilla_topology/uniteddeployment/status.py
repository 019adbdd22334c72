"""Computes the status of a UnitedDeployment (uniteddeployment.md §12)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.kinds.uniteddeployment.types import (
    FAILURE,
    PROVISIONED,
    RESERVED_LABEL,
    SUBSET_UPDATED,
    UPDATED,
    SubsetStatus,
    UnitedDeployment,
    UnitedDeploymentStatus,
)
from flotilla_common.api.meta import Condition
from flotilla_common.api.selectors import Selector
from flotilla_common.workload.revisions import RevisionChoice
from flotilla_topology.uniteddeployment.claiming import Family
from flotilla_topology.uniteddeployment.schedulability import CREATED, JOINED, Schedulability, changed


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The findings and decisions of a pass."""

    revisions: RevisionChoice
    family: Family
    found: Mapping[str, Schedulability]  # by subset; empty under the Fixed strategy
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
    reserved = {child.name: found.reserved for child in children if (found := outcome.found.get(child.name))}
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
        child, found = children.get(stored.name), outcome.found.get(stored.name)
        if stored.name in kept:
            condition = found.condition if found is not None else None
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
    if any((one.type, one.status) == (new.type, new.status) for one in conditions):
        return list(conditions)
    return [*(one for one in conditions if one.type != new.type), new]
