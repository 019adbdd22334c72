"""Computes the status of a CloneSet, and explains why pods are not available (cloneset.md §5).

The counts describe the pods as the pass found them, before its own writes. The conditions already reflect the new spec.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet, CloneSetStatus
from flotilla_common.api.meta import Condition, later
from flotilla_common.api.workload import Lifecycle
from flotilla_common.control.plan import Event, Patch
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import StatusPlan, write_status
from flotilla_common.workload.causes import Group, PodContext, explain_pods, stuck_terminating

NO_DEADLINE = 2**31 - 1
"""The progressDeadlineSeconds that means the same as unset."""
PROGRESSING = "Progressing"
EXCEEDED = "ProgressDeadlineExceeded"
UPDATING = "CloneSetUpdated"
_FAILURES = {"scale": "FailedScale", "update": "FailedUpdate"}


class CloneSetStatusPlan(StatusPlan):
    """The status write and its consequences for the plan."""

    wake_at: datetime | None = None  # when the progress deadline ends
    notes: Mapping[str, str] = {}  # for the next pass: conditions of failures that this process has seen
    overdue: str = ""  # for a rollout that takes too long: the condition's message and the cause


def settled_revision(context: PlanContext) -> str:
    """Return the current revision. The update revision becomes current once all pods carry it, ready or not (§5.2)."""
    counts, revisions = context.pods.counts, context.revisions
    complete = counts.updated == counts.replicas == context.targets.replicas
    return (revisions.update if complete else revisions.current).metadata.name


def plan_status(context: PlanContext, cause: str) -> CloneSetStatusPlan:
    """Compute the status, and the write if it is due (§5.5).

    `cause`: why the rollout does not progress, for the event of one that takes too long.
    """
    now = context.now.replace(microsecond=0)  # as Kubernetes writes times
    cloneset, counts = context.snapshot.cloneset, context.pods.counts
    stored = cloneset.status
    current = settled_revision(context)
    progressing, wake_at = _progressing(context, current, now)
    status = CloneSetStatus(
        observed_generation=cloneset.metadata.generation,
        replicas=counts.replicas,
        ready_replicas=counts.ready,
        available_replicas=counts.available,
        updated_replicas=counts.updated,
        updated_ready_replicas=counts.updated_ready,
        updated_available_replicas=counts.updated_available,
        expected_updated_replicas=context.targets.expected_updated,
        update_revision=context.revisions.update.metadata.name,
        current_revision=current,
        collision_count=context.revisions.collision_count,
        label_selector=str(context.selector),
        conditions=_conditions(context, progressing, now),
    )
    named = _names(status) != _names(stored) or progressing != _find(stored.conditions, PROGRESSING)
    counted = msgspec.structs.replace(status, conditions=stored.conditions) != stored
    urgent = named or (counted and _at_rest(context))
    before, after, seen = _failed(stored.conditions), _failed(status.conditions), _seen(context.snapshot)
    due = urgent or counted or bool(after - before) or bool((before - after) & seen)
    overdue = _overdue(progressing, cause)
    news = overdue if _find(stored.conditions, PROGRESSING) != progressing else ""
    patch = _patch(cloneset, status, news) if due else None
    notes = dict.fromkeys((before | after) & seen, "")  # the write may have to wait, or fail
    return CloneSetStatusPlan(patch=patch, urgent=urgent, wake_at=wake_at, notes=notes, overdue=overdue)


def _at_rest(context: PlanContext) -> bool:
    """Report whether all pods exist, on their side of the partition and available: these counts will stay."""
    counts, want = context.pods.counts, context.targets
    return counts.replicas == counts.available == want.replicas and counts.updated >= want.expected_updated


def _names(status: CloneSetStatus) -> tuple[object, ...]:
    """Return the fields whose change is always written at once: everything but the counts."""
    return (
        status.observed_generation,
        status.update_revision,
        status.current_revision,
        status.label_selector,
        status.expected_updated_replicas,
        status.collision_count,
    )


def _overdue(progressing: Condition | None, cause: str) -> str:
    """Return the message of a rollout that takes too long, with its cause; empty for any other.

    Clients compare the message of the condition, so the cause goes only into the reason and the event.
    """
    if progressing is None or progressing.reason != EXCEEDED:
        return ""
    return f"{progressing.message}: {cause}" if cause else progressing.message


def _patch(cloneset: CloneSet, status: CloneSetStatus, overdue: str) -> Patch:
    """Build a merge patch of the whole status, conditional on the version that was read.

    `overdue`: the event text of a rollout that has just exceeded its deadline.
    """
    content: dict[str, Any] = msgspec.to_builtins(status)
    for member in ("updatedAvailableReplicas", "expectedUpdatedReplicas", "conditions"):
        content[member] = content[member] or None  # absent when empty
    event = Event(EXCEEDED, overdue, warning=True) if overdue else None
    return write_status(CLONE_SET, cloneset.metadata, content, on_success=event)


def _find(conditions: list[Condition], kind: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == kind), None)


def _progressing(context: PlanContext, current: str, now: datetime) -> tuple[Condition | None, datetime | None]:
    """Return condition Progressing (None without a deadline), and when to evaluate it again (§5.3)."""
    cloneset = context.snapshot.cloneset
    deadline = cloneset.spec.progress_deadline_seconds
    if deadline is None or deadline == NO_DEADLINE:
        return None, None
    stored = _find(cloneset.status.conditions, PROGRESSING)
    status, reason, message = _verdict(context, current, stored, later(now, -deadline))
    if stored is not None and (stored.status, stored.reason) == (status, reason):
        condition = stored
    else:
        moved = stored is None or stored.status != status or stored.last_transition_time is None
        condition = Condition(
            type=PROGRESSING,
            status=status,
            reason=reason,
            message=message,
            last_update_time=now,
            last_transition_time=now if moved or stored is None else stored.last_transition_time,
        )
    if reason != UPDATING:
        return condition, None
    # One second on top, because stored times have no fractions.
    return condition, later(condition.last_update_time or now, deadline + 1)


def _verdict(context: PlanContext, current: str, stored: Condition | None, overdue: datetime) -> tuple[str, str, str]:
    """Return (status, reason, message). An update in progress since before `overdue` has timed out."""
    counts, want, update = context.pods.counts, context.targets, context.revisions.update.metadata.name
    replicas, expected = want.replicas, want.expected_updated
    if current == update and counts.replicas == counts.updated == counts.updated_available == replicas:
        return "True", "CloneSetAvailable", "CloneSet is available"
    if want.paused:
        return "True", "CloneSetPaused", "CloneSet is paused"
    if expected < replicas and expected <= counts.updated_available:
        return "True", "ProgressPartitionAvailable", "CloneSet has been paused due to partition ready"
    if stored is not None and (stored.reason == EXCEEDED or _timed_out(stored, overdue)):
        return "False", EXCEEDED, f"CloneSet revision {update} has timed out progressing"
    return "True", UPDATING, "CloneSet is progressing"


def _timed_out(stored: Condition, overdue: datetime) -> bool:
    """Report whether the update has exceeded its deadline.

    Only the state CloneSetUpdated counts, so that time spent paused or available does not.
    """
    since = stored.last_update_time
    return stored.reason == UPDATING and since is not None and since < overdue


def _failed(conditions: list[Condition]) -> set[str]:
    """Return the failure conditions that are True."""
    # A new one must be written even if nothing else ever changes: a failure is known only after the pass whose status
    # reported everything else.
    return {
        condition.type
        for condition in conditions
        if condition.status == "True" and condition.type in _FAILURES.values()
    }


def _seen(snapshot: CloneSetSnapshot) -> set[str]:
    """Return the failure conditions that this process has seen."""
    # The others are removed with the next change, so that a take-over writes nothing for what OpenKruise left behind.
    return {kind for phase, kind in _FAILURES.items() if phase in snapshot.failures or kind in snapshot.notes}


def _conditions(context: PlanContext, progressing: Condition | None, now: datetime) -> list[Condition]:
    """Return the stored conditions with Progressing replaced, new failures added and past failures removed (§5.4)."""
    # The original never removes a FailedScale or FailedUpdate.
    over = _phases_that_are_over(context)
    stored = context.snapshot.cloneset.status.conditions
    conditions = [condition for condition in stored if condition.type not in (PROGRESSING, *over)]
    for phase, kind in _FAILURES.items():
        text = context.snapshot.failures.get(phase)
        if text is None:
            continue
        failed = Condition(type=kind, status="True", message=text, last_transition_time=now)
        existing = _find(conditions, kind)
        if existing is None:
            conditions.append(failed)
        elif existing.status != "True":
            conditions[conditions.index(existing)] = failed
    if progressing is not None:
        conditions.append(progressing)
    return conditions


def _phases_that_are_over(context: PlanContext) -> list[str]:
    """Return the failure conditions of the phases that did not fail in the last pass.

    The phase must also be idle, or this process must have seen the failure: a service that has just started has not
    tried yet.
    """
    counts, want, snapshot = context.pods.counts, context.targets, context.snapshot
    idle = {
        "scale": want.replicas <= counts.replicas <= want.ceiling,
        "update": counts.updated >= want.expected_updated or want.paused or want.on_delete,
    }
    return [
        kind
        for phase, kind in _FAILURES.items()
        if phase not in snapshot.failures and (idle[phase] or kind in snapshot.notes)
    ]


def explain_unavailable(context: PlanContext, builder: PlanBuilder) -> Sequence[Group]:
    """Add the root causes of unavailable pods as reasons, whether or not anything waits for them."""
    spec = context.snapshot.cloneset.spec
    lifecycle = spec.lifecycle or Lifecycle()
    around = PodContext(now=context.now, lifecycle=lifecycle, min_ready_seconds=spec.min_ready_seconds)
    return explain_pods(builder, _pods(context), around)


def _pods(context: PlanContext) -> Iterator[Pod]:
    """Yield pods that are not available, then pods whose termination is stuck."""
    pods = context.pods
    yield from pods.first_unavailable
    yield from (pod for pod in pods.inactive if stuck_terminating(pod, context.now))
