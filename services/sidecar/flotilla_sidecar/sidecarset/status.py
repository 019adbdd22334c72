"""Computes the status of a SidecarSet, and whether a change is worth a write (sidecarset.md §7.5).

The counts describe the pods as the pass found them, before its own writes.
"""

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet, SidecarSetStatus
from flotilla_common.control.plan import Patch
from flotilla_common.control.writes import StatusPlan, write_status
from flotilla_sidecar.sidecarset.context import PlanContext


def plan_status(context: PlanContext) -> StatusPlan:
    """Compute the status, and the write if it is due.

    It is not written before the revision of the spec is stored: a generation counts as observed only once its
    revision is registered (§7.2). The next pass, which follows at once, writes it.
    """
    if context.revisions.writes:
        return StatusPlan()
    pods, stored = context.pods, context.sidecar_set.status
    status = SidecarSetStatus(
        observed_generation=max(context.sidecar_set.metadata.generation, stored.observed_generation),
        matched_pods=pods.matched,
        updated_pods=pods.updated,
        ready_pods=pods.ready,
        updated_ready_pods=pods.updated_ready,
        latest_revision=context.revision_name,
        collision_count=context.revisions.collision_count,
    )
    if status == stored:
        return StatusPlan()
    urgent = _names(status) != _names(stored) or _at_rest(context)
    return StatusPlan(patch=_patch(context.sidecar_set, status), urgent=urgent)


def _patch(sidecar_set: SidecarSet, status: SidecarSetStatus) -> Patch:
    """Build a merge patch of the whole status, conditional on the version that was read."""
    counts: Json = {
        "matchedPods": status.matched_pods,
        "updatedPods": status.updated_pods,
        "readyPods": status.ready_pods,
        "updatedReadyPods": status.updated_ready_pods or None,  # absent when 0, which the others never are
    }
    return write_status(SIDECAR_SET, sidecar_set.metadata, msgspec.to_builtins(status) | counts)


def _names(status: SidecarSetStatus) -> tuple[object, ...]:
    """Return the fields whose change is always written at once: everything but the counts."""
    return status.observed_generation, status.latest_revision, status.collision_count


def _at_rest(context: PlanContext) -> bool:
    """Report whether all pods are ready and, where intended, updated: these counts will stay."""
    pods = context.pods
    return pods.ready == pods.matched and pods.updated + context.targets.partition >= pods.matched
