"""Decides which ready pods can be spared while pods move from one subset to another.

The reference shrinks and deletes children in the pass that creates and grows others, so that for a while too few pods
serve. Here ready pods are given up only above `spec.replicas`, as long as others are expected.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.uniteddeployment.types import UnitedDeployment
from flotilla_common.api.meta import EARLIEST, later
from flotilla_common.api.workload import Workload
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_topology.uniteddeployment.allocation import Allocation
from flotilla_topology.uniteddeployment.children import (
    ADVANCED_STATEFUL_SETS,
    STATEFUL_SETS,
    Child,
    ChildKind,
    Family,
    ordinal,
)
from flotilla_topology.uniteddeployment.schedulability import Schedulability

PROGRESS_DEADLINE = 600
"""The seconds after the creation of a child's youngest pod during which its missing pods are expected.

This is a Deployment's default progress deadline. Afterwards, shrinking continues without them: a full quota would
otherwise block both forever.
"""


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """The replicas of children during a handover, and the workloads that are no longer needed."""

    replicas: Mapping[str, int]  # by subset; more than allocated where pods are kept for now
    going: Sequence[tuple[ChildKind, Workload]] = ()  # workloads outside the topology that can be deleted
    moves: bool = True  # pods are being given up, or will be


def hand_over(
    owner: UnitedDeployment,
    family: Family,
    allocated: Allocation,
    schedulability: Mapping[str, Schedulability],
    now: datetime,
    builder: PlanBuilder,
) -> Handover:
    """Return the replicas of children in this pass and the workloads to delete, and give reasons for waiting."""
    leaving = [(family.kind, child.workload, _serving(child)) for child in family.surplus]
    leaving += [(kind, workload, _still_serving(workload)) for kind, workload in family.others]
    shrinking = [child for child in family.children if allocated[child.name] < child.workload.replicas]
    if not leaving and not shrinking:
        return Handover(replicas=allocated, moves=False)
    ready = sum(_serving(child) for child in family.children) + sum(lost for _, _, lost in leaving)
    spare = max(ready - owner.spec.replicas, 0)
    going: list[tuple[ChildKind, Workload]] = []
    for kind, workload, lost in leaving:
        if lost > spare:
            text = f"{kind.name} {workload.metadata.name} is deleted when {owner.spec.replicas} other pods are ready"
            builder.reason(State.WAITING, "WaitingForOtherSubsets", text, [workload.metadata.name])
        elif workload.metadata.deletion_timestamp is None:
            spare -= lost
            going.append((kind, workload))
    replicas = dict(allocated)
    if shrinking and _more_are_coming(owner, family, allocated, schedulability, now, builder):
        for child in shrinking:
            wanted = allocated[child.name]
            kept, lost = _shrink(child, wanted, spare)
            spare -= lost
            replicas[child.name] = kept
            if kept > wanted:
                text = f"subset {child.name} keeps {kept} pods instead of {wanted} until others are ready"
                builder.reason(State.WAITING, "WaitingForOtherSubsets", text, [child])
    return Handover(replicas=replicas, going=going)


def _serving(child: Child) -> int:
    """Return how many ready pods of the child stay: pods beyond its replicas are about to be deleted."""
    if child.metadata.deletion_timestamp is not None:
        return 0
    return min(sum(pod.active and pod.ready for pod in child.pods), child.workload.replicas)


def _still_serving(workload: Workload) -> int:
    """Return how many pods of a workload of another kind are ready, by its status: its pods are not watched."""
    return 0 if workload.metadata.deletion_timestamp is not None else workload.status.ready_replicas


def _more_are_coming(
    owner: UnitedDeployment,
    family: Family,
    allocated: Allocation,
    schedulability: Mapping[str, Schedulability],
    now: datetime,
    builder: PlanBuilder,
) -> bool:
    """Report whether pods are expected in any subset. If so, the next pass is due when they no longer are."""
    coming = False
    for subset in owner.spec.topology.subsets:
        child, stuck = family.of(subset.name), schedulability.get(subset.name, Schedulability()).waiting
        if not stuck and _is_coming(child, allocated[subset.name], now, builder):
            coming = True
    return coming


def _is_coming(child: Child | None, wanted: int, now: datetime, builder: PlanBuilder) -> bool:
    """Report whether the subset lacks ready pods that its child is expected to create."""
    if child is None:
        return wanted > 0
    if _serving(child) >= wanted:
        return False
    workload = child.workload
    if workload.replicas < wanted or workload.metadata.generation != workload.status.observed_generation:
        return True
    youngest = max(obj.metadata.creation_timestamp or EARLIEST for obj in (workload, *child.pods))
    return not builder.deadlines.passed(later(youngest, PROGRESS_DEADLINE), now)


def _shrink(child: Child, wanted: int, spare: int) -> tuple[int, int]:
    """Return (the child's replicas if it may give up `spare` ready pods, how many it gives up)."""
    pods = [pod for pod in child.pods if pod.active]
    replicas = max(wanted, min(child.workload.replicas, len(pods)))  # pods that were never created go first
    lost = 0
    for pod in _in_order_of_removal(child.kind, pods):
        if replicas == wanted or (pod.ready and lost == spare):
            break
        lost += pod.ready
        replicas -= 1
    return replicas, lost


def _in_order_of_removal(kind: ChildKind, pods: Sequence[Pod]) -> Sequence[Pod]:
    if kind in (STATEFUL_SETS, ADVANCED_STATEFUL_SETS):
        return sorted(pods, key=ordinal, reverse=True)
    return sorted(pods, key=lambda pod: pod.ready)
