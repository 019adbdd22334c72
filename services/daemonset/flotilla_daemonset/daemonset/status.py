"""Computes the status of a DaemonSet and the reasons for it (daemonset.md §5).

The counts describe the pods as the pass found them, before its own writes. The reasons explain why nodes have no pod,
or no available one, and how far the update is.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSetStatus
from flotilla_common.api.workload import Lifecycle
from flotilla_common.control.plan import Patch, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, nodes_word
from flotilla_common.control.writes import StatusPlan, write_status
from flotilla_common.workload.causes import PodContext, explain_pods, stuck_terminating
from flotilla_common.workload.pernode import explain_excluded
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pods import NodeState


class Counts(msgspec.Struct, kw_only=True):
    """Counts of nodes."""

    desired: int = 0
    current: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    misscheduled: int = 0

    @property
    def complete(self) -> bool:
        """Report whether every node that should have a pod has an updated and available one."""
        return self.desired == self.current == self.updated == self.available


def count(context: PlanContext) -> Counts:
    """Count the nodes."""
    done = len(context.nodes) - len(context.pending)
    counts = Counts(desired=context.targets.desired, current=done, ready=done, available=done, updated=done)
    for state in context.pending:
        first = state.first
        if first is None:
            continue
        if not state.fit.should_run:
            counts.misscheduled += 1
            continue
        counts.current += 1
        counts.ready += first.ready
        counts.available += context.is_available(first)
        counts.updated += context.criteria.is_updated(first)
    return counts


def plan_status(context: PlanContext, counts: Counts) -> StatusPlan:
    """Compute the status, and the write if it is due."""
    stored = context.daemonset.status
    status = msgspec.structs.replace(
        stored,
        observed_generation=context.daemonset.metadata.generation,
        desired_number_scheduled=counts.desired,
        current_number_scheduled=counts.current,
        number_ready=counts.ready,
        updated_number_scheduled=counts.updated,
        number_available=counts.available,
        number_unavailable=counts.desired - counts.available,
        number_misscheduled=counts.misscheduled,
        update_revision=context.revisions.hash,
        collision_count=context.revisions.collision_count,
    )
    if status == stored:
        return StatusPlan()
    return StatusPlan(patch=_patch(context, status), urgent=_names(status) != _names(stored) or counts.complete)


def _names(status: DaemonSetStatus) -> tuple[object, ...]:
    """Return the fields whose change is always written at once: everything but the counts."""
    return status.observed_generation, status.update_revision, status.collision_count


def _patch(context: PlanContext, status: DaemonSetStatus) -> Patch:
    """Build a merge patch, conditional on the version read. Conditions belong to other writers (§2.2)."""
    content: dict[str, Any] = msgspec.to_builtins(status)
    del content["conditions"]
    for absent_when_zero in ("numberAvailable", "numberUnavailable"):
        content[absent_when_zero] = content[absent_when_zero] or None
    return write_status(DAEMON_SET, context.daemonset.metadata, content)


def explain(context: PlanContext, counts: Counts, builder: PlanBuilder) -> None:
    """Add the causes of unavailable pods, of pods whose termination is stuck, and of nodes without a pod."""
    around = PodContext(
        now=context.now,
        lifecycle=context.daemonset.spec.lifecycle or Lifecycle(),
        min_ready_seconds=context.targets.min_ready_seconds,
        nodes={state.name: state.node for state in context.pending if not _is_served(context, state)},
    )
    explain_pods(builder, _pods(context), around)
    _explain_progress(context, counts, builder)
    _explain_nodes(context, builder)


def _pods(context: PlanContext) -> Iterator[Pod]:
    """Yield pods that are waited for, then pods whose termination is stuck."""
    for state in context.pending:
        if state.new is not None and not context.is_available(state.new):
            yield state.new
        elif state.fit.should_run and state.living and not _is_served(context, state):
            yield state.living[0]
    yield from context.node_view.lost
    yield from (pod for state in context.pending for pod in state.pods if stuck_terminating(pod, context.now))


def _is_served(context: PlanContext, state: NodeState) -> bool:
    return any(context.is_available(pod) for pod in state.living)


def is_complete(context: PlanContext, counts: Counts) -> bool:
    """Report whether every node that should have a pod has just one, updated, available and staying."""
    return counts.complete and not any(state.fit.should_run for state in context.pending)


def _explain_progress(context: PlanContext, counts: Counts, builder: PlanBuilder) -> None:
    targets = context.targets
    old = [state.name for state in context.pending if state.old is not None]
    done = f"{counts.updated} of {nodes_word(counts.desired)} updated"
    if targets.on_delete and old:
        text = f"the old pods on {named(old)} must be deleted manually: type is OnDelete"
        builder.reason(State.HELD, "OnDelete", text, old)
    elif targets.paused and old:
        builder.reason(State.HELD, "PausedByUser", f"paused by the user: {done}", old)
    elif not counts.desired:
        builder.reason(State.DONE, "Complete", "no node should have a pod")
    elif is_complete(context, counts):
        builder.reason(State.DONE, "Complete", f"{done}, all available")
    elif builder.reasons:
        return
    elif leaving := [pod for state in context.pending if not state.living for pod in state.pods]:
        text = f"{named(leaving)} must be gone before a new pod is created on the node"
        builder.reason(State.WAITING, "WaitingForTermination", text, leaving)
    else:
        text = f"{done}, {counts.available} of {nodes_word(counts.desired)} have an available pod"
        builder.reason(State.WAITING, "WaitingForAvailability", text)


def _explain_nodes(context: PlanContext, builder: PlanBuilder) -> None:
    """Explain which nodes get no pod, and which keep a pod that they would not get now."""
    explain_excluded(builder, context.node_view.excluded)
    kept = [state for state in context.pending if not state.fit.should_run]
    if kept:
        causes = "; ".join(f"{state.fit.why_not} ({state.name})" for state in kept[:3])
        more = f"; and {len(kept) - 3} more" if len(kept) > 3 else ""
        text = f"pods on {nodes_word(len(kept))} would not be created there now: {causes}{more}"
        builder.reason(State.NOTE, "Misscheduled", text, [state.name for state in kept])
