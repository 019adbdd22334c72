"""Computes the status of a StatefulSet and the reasons for it (statefulset.md §5).

The counts describe the pods as the pass found them, before its own writes. The reasons explain why pods are not
available, and how far the update is.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from typing import Any

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet, StatefulSetStatus, VolumeClaimStatus
from flotilla_common.api.meta import Condition
from flotilla_common.api.workload import Lifecycle
from flotilla_common.control.plan import Patch, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import pods_word
from flotilla_common.control.writes import StatusPlan, write_status
from flotilla_common.workload.causes import LOOKED_AT, PodContext, cause_of, explain_pods, stuck_terminating
from flotilla_statefulset.statefulset.claim_state import claim_state
from flotilla_statefulset.statefulset.claims import CLAIM_PHASE, unmade_claim
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.create import CREATE

FAILED_CREATE, FAILED_UPDATE = "FailedCreatePod", "FailedUpdatePod"

REPAIR = "repair"
"""The phase whose failure is the condition FailedUpdatePod."""


def plan_status(context: PlanContext, failures: Mapping[str, str]) -> StatusPlan:
    """Compute the status, and its patch if it differs from the stored one (§5.4).

    `failures`: error texts of this pass and the last one, by phase.
    """
    statefulset, stored = context.statefulset, context.statefulset.status
    status = _status(context, failures)
    if status == stored:
        return StatusPlan()
    urgent = _names(status) != _names(stored) or _kinds(status) != _kinds(stored) or _at_rest(context)
    return StatusPlan(patch=_patch(statefulset, status), urgent=urgent)


def is_complete(context: PlanContext) -> bool:
    """Report whether all pods exist, ready and on the update revision (§5.2)."""
    # Compare with spec.replicas, not with the pods that exist: while all pods are gone, nothing is complete.
    counts, wanted = context.pods.counts, context.targets.replicas
    return counts.replicas == counts.updated == counts.ready == wanted


def _status(context: PlanContext, failures: Mapping[str, str]) -> StatefulSetStatus:
    counts, revisions = context.pods.counts, context.revisions
    complete = is_complete(context)
    return StatefulSetStatus(
        observed_generation=context.statefulset.metadata.generation,
        replicas=counts.replicas,
        ready_replicas=counts.ready,
        available_replicas=counts.available,
        current_replicas=counts.updated if complete else counts.current,
        updated_replicas=counts.updated,
        updated_ready_replicas=counts.updated_ready,
        updated_available_replicas=counts.updated_available,
        current_revision=(revisions.update if complete else revisions.current).metadata.name,
        update_revision=revisions.update.metadata.name,
        collision_count=revisions.collision_count,
        conditions=_conditions(context.statefulset.status.conditions, failures, context.now.replace(microsecond=0)),
        label_selector=str(context.selector),
        volume_claims=_volume_claims(context),
    )


def _at_rest(context: PlanContext) -> bool:
    """Report whether all pods exist, available and, where intended, updated: these counts will stay."""
    counts, targets = context.pods.counts, context.targets
    there = counts.replicas == counts.available == targets.replicas
    return there and counts.updated >= (0 if targets.on_delete else targets.expected_updated)


def _names(status: StatefulSetStatus) -> tuple[object, ...]:
    """Return the fields whose change is always written at once: everything but the counts."""
    return (
        status.observed_generation,
        status.update_revision,
        status.current_revision,
        status.label_selector,
        status.collision_count,
    )


def _kinds(status: StatefulSetStatus) -> set[str]:
    return {condition.type for condition in status.conditions}


def _volume_claims(context: PlanContext) -> list[VolumeClaimStatus]:
    """Count the claims of each template that match it (§5.1)."""
    claims, ordinals = context.claims, context.targets.ordinals
    compatible, ready = Counter[str](), Counter[str]()
    for ordinal, mine in claims.by_ordinal.items():
        for name, claim in mine.items() if ordinal in ordinals else ():
            state = claim_state(claim, claims.wanted[name])
            if state.compatible and claim.metadata.deletion_timestamp is None:
                compatible[name] += 1
                ready[name] += state.ready
    return [
        VolumeClaimStatus(
            volume_claim_name=template.name,
            compatible_replicas=compatible[template.name],
            compatible_ready_replicas=ready[template.name],
        )
        for template in claims.templates
    ]


def _conditions(stored: Sequence[Condition], failures: Mapping[str, str], now: datetime) -> list[Condition]:
    """Return one condition for each kind of failure; none without failures (§5.3)."""
    texts = {FAILED_CREATE: _create_failure(failures), FAILED_UPDATE: failures.get(REPAIR, "")}
    verbs = {FAILED_CREATE: "create", FAILED_UPDATE: "update"}
    before = {condition.type: condition for condition in stored}
    return [
        Condition(
            type=kind,
            status="True",
            message=f"StatefulPodControl failed to {verbs[kind]} Pod error: {text}",
            last_transition_time=before[kind].last_transition_time if kind in before else now,
        )
        for kind, text in texts.items()
        if text
    ]


def _create_failure(failures: Mapping[str, str]) -> str:
    for phase, text in failures.items():
        if phase.startswith(CLAIM_PHASE):
            return f"{unmade_claim(phase.removeprefix(CLAIM_PHASE))}: {text}"
    return failures.get(CREATE, "")


def _patch(statefulset: StatefulSet, status: StatefulSetStatus) -> Patch:
    """Build a merge patch of the whole status, conditional on the version that was read."""
    content: dict[str, Any] = msgspec.to_builtins(status)
    for member in ("updatedReadyReplicas", "updatedAvailableReplicas", "volumeClaims", "conditions"):
        content[member] = content[member] or None  # absent when empty
    return write_status(STATEFUL_SET, statefulset.metadata, content)


def state_of(context: PlanContext, pod: Pod) -> str:
    """Describe why a pod is not available: "web-1: image nginx:nope of container web: ErrImagePull: … not found"."""
    cause = cause_of(pod, _around(context))
    return f"{pod.metadata.name}: {cause.text if cause is not None else 'about to become available'}"


def explain_unavailable(context: PlanContext, builder: PlanBuilder) -> None:
    """Add the root causes of wanted pods that are not available, and of unwanted pods whose termination is stuck."""
    explain_pods(builder, _pods(context), _around(context))


def _around(context: PlanContext) -> PodContext:
    lifecycle = context.statefulset.spec.lifecycle or Lifecycle()
    return PodContext(now=context.now, lifecycle=lifecycle, min_ready_seconds=context.targets.min_ready_seconds)


def _pods(context: PlanContext) -> Iterator[Pod]:
    pods = context.pods
    present = (ordinal for ordinal in pods.unavailable if ordinal in pods.by_ordinal)
    yield from (pods.by_ordinal[ordinal] for ordinal in nsmallest(LOOKED_AT, present))
    condemned = (pods.by_ordinal[ordinal] for ordinal in pods.condemned)
    yield from (pod for pod in condemned if stuck_terminating(pod, context.now))


def explain_progress(context: PlanContext, builder: PlanBuilder) -> None:
    """Explain how far the update is, if no step of the pass has given a reason."""
    counts, targets = context.pods.counts, context.targets
    outdated = len(context.pods.outdated)
    if targets.on_delete and outdated:
        text = f"{pods_word(outdated)} of older revisions must be deleted manually: type is OnDelete"
        builder.reason(State.HELD, "OnDelete", text)
    elif targets.paused:
        text = f"paused by the user: {counts.updated} of {pods_word(targets.expected_updated)} updated"
        builder.reason(State.HELD, "PausedByUser", text)
    elif builder.reasons:
        return
    elif outdated and counts.updated >= targets.expected_updated:
        builder.reason(
            State.HELD,
            "PartitionReached",
            f"{counts.updated} of {pods_word(counts.replicas)} updated, partition {targets.partition} keeps the other "
            f"{outdated} on older revisions",
        )
    elif context.pods.unavailable:
        by_ordinal = context.pods.by_ordinal
        pods = [by_ordinal[ordinal] for ordinal in sorted(context.pods.unavailable) if ordinal in by_ordinal]
        states = "; ".join(state_of(context, pod) for pod in pods[:3])
        more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
        builder.reason(State.WAITING, "WaitingForAvailability", f"{states}{more}", pods)
    else:
        builder.reason(
            State.DONE, "Complete", f"{counts.updated} of {pods_word(counts.replicas)} updated, all available"
        )
