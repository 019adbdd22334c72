"""Computes the status of a SidecarSet, and explains how far its rollout is (sidecarset.md §7.5).

The counts describe the pods as the pass found them, before its own writes.
"""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet, SidecarSetStatus
from flotilla_common.control.plan import Patch, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.control.writes import StatusPlan, write_status
from flotilla_common.workload.causes import PodContext, explain_pods
from flotilla_sidecar.sidecarset.context import PlanContext
from flotilla_sidecar.sidecarset.pods import pod_state


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


def explain_progress(context: PlanContext, builder: PlanBuilder) -> None:
    """Explain the progress, in addition to the reasons of the pass's steps."""
    pods = context.pods
    far = f"{pods.updated} of {pods_word(pods.matched)} updated"
    if not pods.matched:
        builder.reason(State.DONE, "NoPods", "no running pod was injected with it")
    elif pods.complete:
        _explain_end(context, far, builder)
    elif not context.updates:
        text = f"{far}: updateStrategy.type is NotUpdate, only new pods get other sidecars"
        builder.reason(State.HELD, "NotUpdate", text)
    elif context.strategy.paused:
        builder.reason(State.HELD, "PausedByUser", f"paused by the user: {far}")
    else:
        _explain_rest(context, far, builder)


def _explain_end(context: PlanContext, far: str, builder: PlanBuilder) -> None:
    waiting = context.pods.restarting
    if not waiting:
        builder.reason(State.DONE, "Complete", f"{far}, all ready")
    elif not builder.reasons:
        builder.reason(State.WAITING, "WaitingForAvailability", f"{far}; not ready yet: {named(waiting)}", waiting)


def _explain_rest(context: PlanContext, far: str, builder: PlanBuilder) -> None:
    """Explain why pods that are not updated are not even candidates."""
    pods, partition = context.pods, context.targets.partition
    if pods.unupgradable:
        text = f"more than images has changed: {named(pods.unupgradable)} keep their sidecars until they are recreated"
        builder.reason(State.STUCK, "NotUpgradable", text, pods.unupgradable, symptom=True)
    if pods.busy:
        text = f"kubelets have yet to restart sidecars of {named(pods.busy)} for an earlier change"
        builder.reason(State.WAITING, "Busy", text, pods.busy)
    if pods.unchosen:
        text = f"updateStrategy.selector does not match {named(pods.unchosen)}"
        builder.reason(State.HELD, "NotSelected", text, pods.unchosen)
    if pods.candidates and len(pods.candidates) <= partition:
        kept = len(pods.candidates)
        text = f"{far}, partition {partition} keeps {pods_word(kept)} on older sidecars"
        builder.reason(State.HELD, "PartitionReached", text)


def explain_unready(context: PlanContext, builder: PlanBuilder) -> None:
    """Explain why pods with its sidecars are not ready, first the updated ones, which the rollout waits for."""
    explain_pods(builder, _unready(context), PodContext(now=context.now), namespaced=True)


def _unready(context: PlanContext) -> Iterator[Pod]:
    pods = context.pods
    yield from pods.restarting
    if pods.ready < pods.matched:
        known = {pod.metadata.uid for pod in pods.restarting}
        for pod in pods.matching:
            state = pod_state(pod, context.desired)
            if state is not None and not state.serving and pod.metadata.uid not in known:
                yield pod
