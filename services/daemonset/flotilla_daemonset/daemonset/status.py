"""Computes the status of a DaemonSet, and whether a change is worth a write (daemonset.md §5).

The counts describe the pods as the pass found them, before its own writes.
"""

from typing import Any

import msgspec

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSetStatus
from flotilla_common.control.plan import Patch
from flotilla_common.control.writes import StatusPlan, write_status
from flotilla_daemonset.daemonset.context import PlanContext


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
