"""Plans one pass over one UnitedDeployment, from snapshot to plan (uniteddeployment.md §6).

The steps, in order: revisions, claiming of children, schedulability of their pods, replicas and partitions of each
subset; then children are created, deleted and updated, and last comes the status. It is written only if nothing failed
in the pass.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.documents import Json, merge_patch
from flotilla_common.api.kinds.uniteddeployment.types import (
    RESERVED_LABEL,
    UNITED_DEPLOYMENT,
    UPDATED,
    UnitedDeployment,
    UnitedDeploymentStatus,
)
from flotilla_common.api.resources import POD, REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Event, Intent, Patch, Plan, Reason, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder, refused
from flotilla_common.control.writes import patch_of, write_status
from flotilla_common.workload.ownership import adopt_orphans, release
from flotilla_common.workload.revisions import RevisionChoice
from flotilla_topology.uniteddeployment import allocation, provision
from flotilla_topology.uniteddeployment.allocation import Allocation, AllocationError
from flotilla_topology.uniteddeployment.children import KINDS, Child, ChildKind, Claimed, Family, claim, family, kind_of
from flotilla_topology.uniteddeployment.handover import hand_over
from flotilla_topology.uniteddeployment.revisions import choose, loose, strays, surplus
from flotilla_topology.uniteddeployment.schedulability import (
    Patience,
    Reservation,
    Schedulability,
    adaptive,
    verified_again,
)
from flotilla_topology.uniteddeployment.snapshot import UnitedDeploymentSnapshot
from flotilla_topology.uniteddeployment.status import Outcome, explain, status_of, with_new_subsets
from flotilla_topology.unscheduled import is_unscheduled


def plan(snapshot: UnitedDeploymentSnapshot, now: datetime) -> Plan:
    """Plan one pass. Invalid input in a UnitedDeployment becomes a reason and never raises."""
    if snapshot.owner.metadata.deletion_timestamp is not None:
        return Plan()
    kind = kind_of(snapshot.owner.spec.template)
    if kind is None:
        return refused("InvalidTemplate", "nothing is done: spec.template has to have exactly one member")
    try:
        selector = Selector.of_workload(snapshot.owner.spec.selector)
    except ValueError as error:
        return refused("InvalidSelector", f"nothing is done: {error}")
    try:
        revisions = choose(snapshot, selector)
    except ValueError as error:
        return _failed("FailedRevisionProvision", "InvalidTemplate", f"spec.template: {error}")
    return _plan(snapshot, kind, selector, revisions, now)


def _plan(
    snapshot: UnitedDeploymentSnapshot, kind: ChildKind, selector: Selector, revisions: RevisionChoice, now: datetime
) -> Plan:
    """Plan a pass over a UnitedDeployment whose spec is readable."""
    owner, builder = with_new_subsets(snapshot.owner, now), PlanBuilder()
    claims = {known.name: claim(snapshot, known, selector) for known in KINDS}
    children = family(snapshot, kind, claims, revisions.update.metadata.name)
    _keep_revisions(snapshot, selector, revisions, builder)
    _settle_ownership(owner, claims, builder)
    schedulability = _look_at_pods(owner, children, revisions, now, builder)
    if marked := _newly_marked(owner, schedulability):
        return PlanBuilder().plan(status=_write(snapshot.owner, marked), urgent_status=True)
    _relabel(schedulability, builder)
    try:
        replicas = _allocate(owner, children, schedulability)
    except AllocationError as error:
        text = f"Specified subset replicas is ineffective: {error}"
        return _failed("Failed SpecifySubsetReplicas", "InvalidSubsetReplicas", text)
    schedulability = _try_again(children, schedulability, replicas, now)
    wanted = owner.spec.update_strategy.manual_update.partitions
    partitions = {name: max(0, min(wanted.get(name, 0), count)) for name, count in replicas.items()}
    handover = hand_over(owner, children, replicas, schedulability, now, builder)
    subsets = provision.Subsets(
        owner=owner,
        family=children,
        revision=revisions.update.metadata.name,
        replicas=handover.replicas,
        partitions=partitions,
        going=handover.going,
        schedulability=schedulability,
    )
    provision.plan_provision(subsets, snapshot.taken_names, builder)
    provision.plan_update(subsets, builder)
    outcome = Outcome(
        revisions=revisions,
        family=children,
        schedulability=schedulability,
        replicas=replicas,
        partitions=partitions,
        moves=handover.moves,
    )
    explain(subsets, claims, builder)
    return _finish(snapshot.owner, owner, selector, outcome, builder, now)


def _failed(event: str, code: str, message: str) -> Plan:
    """Return the plan for a spec that must be corrected first. The pass is retried."""
    return Plan(
        reasons=(Reason(State.STUCK, code, message),),
        events=(Event(reason=event, message=message, warning=True),),
        errors=(("plan", message),),
    )


def _keep_revisions(
    snapshot: UnitedDeploymentSnapshot, selector: Selector, revisions: RevisionChoice, builder: PlanBuilder
) -> None:
    status = snapshot.owner.status
    kept = {status.current_revision, status.updated_revision, revisions.update.metadata.name}
    deletes = surplus(snapshot, selector, kept)
    builder.stage([(delete,) for delete in deletes[:MAX_CHAINS_PER_PASS]], stop_on_failure=False)
    builder.stage(release(snapshot.owner.metadata.uid, REVISION, strays(snapshot, selector)), stop_on_failure=False)
    builder.stage((revisions.writes,))
    raised = {write.name for write in revisions.writes}
    adopted = [revision for revision in loose(snapshot, selector) if revision.metadata.name not in raised]
    builder.stage(adopt_orphans(UNITED_DEPLOYMENT, snapshot.owner.metadata, REVISION, adopted))


def _settle_ownership(owner: UnitedDeployment, claims: Mapping[str, Claimed], builder: PlanBuilder) -> None:
    """Release workloads that no longer match, and adopt matching orphans of the template's kind."""
    wanted = kind_of(owner.spec.template)
    for kind in KINDS:
        claimed = claims[kind.name]
        builder.stage(release(owner.metadata.uid, kind.resource, claimed.strays), stop_on_failure=False)
        if kind is wanted:
            builder.stage(adopt_orphans(UNITED_DEPLOYMENT, owner.metadata, kind.resource, claimed.orphans))


def _look_at_pods(
    owner: UnitedDeployment, children: Family, revisions: RevisionChoice, now: datetime, builder: PlanBuilder
) -> dict[str, Schedulability]:
    """Return the schedulability of each child's pods; empty under the Fixed strategy."""
    settings = owner.spec.adaptive
    if settings is None:
        return {}
    patience = Patience.of(settings)
    stored = {subset.name: next(iter(subset.conditions), None) for subset in owner.status.subset_statuses}
    if not owner.spec.reserves:
        return {
            child.name: adaptive(child, stored.get(child.name), patience, now, builder.deadlines)
            for child in children.children
        }
    reservation = Reservation(
        patience=patience,
        revision=revisions.update.metadata.name,
        rollout_began=_rollout_began(owner, revisions, now),
        now=now,
        deadlines=builder.deadlines,
    )
    return {child.name: reservation.look_at(child, stored.get(child.name)) for child in children.children}


def _newly_marked(
    owner: UnitedDeployment, schedulability: Mapping[str, Schedulability]
) -> UnitedDeploymentStatus | None:
    """Return the status with newly unschedulable subsets marked; None if there are none.

    It is written before pods move: afterwards only the mark shows why, and a pass may end half-way. Reserved pods stay,
    and carry a label of their own instead.
    """
    marks = {name: one.condition for name, one in schedulability.items() if one.unschedulable and not one.marked}
    if not marks or owner.spec.reserves:
        return None
    subsets = [
        msgspec.structs.replace(subset, conditions=[mark]) if (mark := marks.get(subset.name)) is not None else subset
        for subset in owner.status.subset_statuses
    ]
    return msgspec.structs.replace(owner.status, subset_statuses=subsets)


def _rollout_began(owner: UnitedDeployment, revisions: RevisionChoice, now: datetime) -> datetime:
    """Return when the condition UnitedDeploymentUpdated got its present status, or now if it changes in this pass."""
    status = "True" if revisions.current.metadata.name == revisions.update.metadata.name else "False"
    stored = next((one for one in owner.status.conditions if (one.type, one.status) == (UPDATED, status)), None)
    return (stored.last_transition_time if stored is not None else None) or now


def _relabel(schedulability: Mapping[str, Schedulability], builder: PlanBuilder) -> None:
    """Label pods as reserved or not."""
    writes = [
        (
            patch_of(
                POD,
                pod.metadata,
                Intent.UPDATE,
                "reserved" if reserved else "not reserved",
                body={"metadata": {"labels": {RESERVED_LABEL: "true" if reserved else "false"}}},
            ),
        )
        for checked in schedulability.values()
        for pod, reserved in checked.relabelled
    ]
    builder.stage(writes[:MAX_CHAINS_PER_PASS])


def _allocate(owner: UnitedDeployment, children: Family, schedulability: Mapping[str, Schedulability]) -> Allocation:
    subsets = [
        allocation.Subset(
            name=subset.name,
            replicas=subset.replicas,
            minimum=subset.min_replicas,
            maximum=subset.max_replicas,
            child=_as_allocated(children.of(subset.name), schedulability.get(subset.name)),
        )
        for subset in owner.spec.topology.subsets
    ]
    return allocation.allocate(
        subsets, owner.spec.replicas, adaptive=owner.spec.adaptive is not None, reserves=owner.spec.reserves
    )


def _as_allocated(child: Child | None, checked: Schedulability | None) -> allocation.Child | None:
    if child is None:
        return None
    if checked is None:  # the Fixed strategy ignores pods
        return allocation.Child(replicas=child.workload.replicas)
    return allocation.Child(
        replicas=child.workload.replicas,
        placed=_placed(child),
        reserved=checked.reserved,
        unschedulable=checked.unschedulable,
        marked=checked.marked,
    )


def _placed(child: Child) -> int:
    """Return the child's replicas minus its unschedulable pods, which are the first to go of surplus pods."""
    wanted = child.workload.replicas
    surplus = max(sum(pod.active for pod in child.pods) - wanted, 0)
    lost = max(sum(map(is_unscheduled, child.pods)) - surplus, 0)
    return max(wanted - lost, 0)


def _try_again(
    children: Family, schedulability: dict[str, Schedulability], replicas: Mapping[str, int], now: datetime
) -> dict[str, Schedulability]:
    """Mark subsets that have just recovered and grow, in reservation mode.

    Nowhere else does a subset get such a new condition without being unschedulable.
    """
    return {
        name: verified_again(checked, now)
        if checked.recovered and (child := children.of(name)) is not None and replicas[name] > child.workload.replicas
        else checked
        for name, checked in schedulability.items()
    }


def _finish(
    stored: UnitedDeployment,
    owner: UnitedDeployment,
    selector: Selector,
    outcome: Outcome,
    builder: PlanBuilder,
    now: datetime,
) -> Plan:
    status = status_of(owner, selector, outcome, now)
    total = owner.spec.replicas
    return builder.plan(
        status=_write(stored, status),
        urgent_status=_decisions(status) != _decisions(stored.status),
        status_after_success=True,
        numbers={
            "replicas": total,
            "allocated": sum(outcome.replicas.values()),
            "total": status.replicas,
            "ready": status.ready_replicas,
            "updated": status.updated_replicas,
            "reserved": status.reserved_pods,
        },
        # No write but the status depends on pods becoming ready, so a thousand of them are processed at a lower rate.
        settled=not builder.stages and not outcome.moves and owner.spec.adaptive is None,
    )


def _decisions(status: UnitedDeploymentStatus) -> tuple[object, ...]:
    """Return the fields that people and programs wait for: everything but counts."""
    subsets = [(subset.name, subset.replicas, subset.conditions) for subset in status.subset_statuses]
    return status.observed_generation, status.updated_revision, status.conditions, subsets


def _write(stored: UnitedDeployment, status: UnitedDeploymentStatus) -> Patch | None:
    """Return the write of the status, if it changes. The first one needs the counts even if they are zero."""
    if status == stored.status:
        return None
    required: Json = {
        "replicas": status.replicas,
        "updatedReplicas": status.updated_replicas,
        "currentRevision": status.current_revision,
    }
    patch = merge_patch(msgspec.to_builtins(stored.status), msgspec.to_builtins(status))
    return write_status(UNITED_DEPLOYMENT, stored.metadata, patch | required)
