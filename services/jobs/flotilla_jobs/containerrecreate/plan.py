"""Plans one ContainerRecreateRequest from its snapshot (containerrecreaterequest.md §6).

The agent does the work and reports; this decides when a request is over, keeps the pod not ready meanwhile, forwards
the kubelet's view of the new containers to the agent, and cleans up. Each pass writes the request at most once, on the
version that it has planned with.

For an unready grace period (§6.4) the finalizer is written first, so that the pod is released in any case; then the
pod's own condition; and only after that the condition of the request, from which the agent counts the period.
"""

from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import POD_READY, RECREATE_ACTIVE, RECREATE_UNREADY
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    COMPLETED,
    GRACE_MESSAGE,
    PRE_RECREATE_GRACE,
    RECREATE_REQUEST,
    RECREATING,
    ContainerRecreateRequest,
    ContainerRecreateRequestStatus,
)
from flotilla_common.api.meta import Condition, later
from flotilla_common.control.plan import Chain, Intent, Json, Patch, Plan, Stage
from flotilla_common.control.planbuilder import Deadlines
from flotilla_common.control.writes import delete_finished, patch_of
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import Blocker, add_blocker, remove_blocker
from flotilla_jobs.containerrecreate import why
from flotilla_jobs.containerrecreate.merge import completed, cut_short, merged, observed
from flotilla_jobs.containerrecreate.snapshot import RecreateSnapshot
from flotilla_jobs.containerrecreate.why import NO_ANSWER
from flotilla_jobs.unreachable_agents import ANSWERS_WITHIN

HOLDER = "ContainerRecreateRequest"
"""Name of the holder in the message of the pod's condition."""

GIVEN_UP_AFTER = timedelta(seconds=60)
"""Time within which the node's agent has to take a request up; fixed (§10)."""

POD_GONE = "pod has gone"

DEADLINE = "recreating has exceeded the activeDeadlineSeconds"
"""Messages of requests that are ended early; scripts match them."""


def plan(snapshot: RecreateSnapshot, now: datetime) -> Plan:
    """Plan the next step of the request."""
    request = snapshot.request
    if request.metadata.deletion_timestamp is not None or request.completed:
        return _clear_up(snapshot, now)
    status = merged(request, snapshot.report, now)
    if status.phase != COMPLETED and (reason := _overdue(snapshot, status, now)):
        end = completed if reason == NO_ANSWER else cut_short  # without any report there is no container to end
        status = end(request, status, reason, now)
    if status.phase == RECREATING and snapshot.pod is not None:
        status = msgspec.structs.replace(status, container_status_snapshot=observed(request, snapshot.pod))
        if _grace_due(request):
            if chain := _keep_not_ready(request, snapshot.pod, now):
                return _explained(snapshot, status, now, Plan(stages=(Stage(chains=(chain,)),)))
            status = _grace_began(status, now)
    write = _status_patch(snapshot, status)
    wake_at = None if status.phase == COMPLETED else _next_deadline(snapshot, status, now)
    return _explained(snapshot, status, now, Plan(status=write, urgent_status=True, wake_at=wake_at))


def _clear_up(snapshot: RecreateSnapshot, now: datetime) -> Plan:
    """Clean up a completed request: release the pod, drop it for agents, merge late reports, then delete it."""
    request = snapshot.request
    if RECREATE_UNREADY in request.metadata.finalizers and not snapshot.pod_known:
        return _explained(snapshot, request.status, now, Plan())  # without reading it, the pod would never be released
    if chain := _release(request, snapshot.pod, now):
        return _explained(snapshot, request.status, now, Plan(stages=(Stage(chains=(chain,)),)))
    status = merged(request, snapshot.report, now)
    write = _status_patch(snapshot, status)
    deleting = request.metadata.deletion_timestamp is not None
    ttl = request.spec.ttl_seconds_after_finished
    if write is not None or deleting or ttl is None:
        return _explained(snapshot, status, now, Plan(status=write, urgent_status=True))
    deadlines = Deadlines()
    delete = delete_finished(
        RECREATE_REQUEST,
        request.metadata,
        ttl=ttl,
        since=request.status.completion_time or request.metadata.creation_timestamp or now,
        now=now,
        deadlines=deadlines,
    )
    if delete:
        return Plan(stages=(Stage(chains=(delete,)),))
    return _explained(snapshot, status, now, Plan(wake_at=deadlines.next))


def _overdue(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus, now: datetime) -> str:
    """Return why the request must end now although the agent is not done, or ""."""
    if snapshot.pod is None and snapshot.pod_known:
        return POD_GONE
    if not status.phase and now >= later(_created(snapshot), GIVEN_UP_AFTER):
        return NO_ANSWER
    deadline = _deadline(snapshot)
    return DEADLINE if deadline is not None and now >= deadline else ""


def _next_deadline(
    snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus, now: datetime
) -> datetime | None:
    """Return when the request ends by itself or a missing agent is reported.

    Everything else comes as a change of pod, request or report.
    """
    created = _created(snapshot)
    unanswered = [] if status.phase else [later(created, ANSWERS_WITHIN), later(created, GIVEN_UP_AFTER)]
    moments = [_deadline(snapshot), *(moment for moment in unanswered if moment > now)]
    return min((moment for moment in moments if moment is not None), default=None)


def _created(snapshot: RecreateSnapshot) -> datetime:
    created = snapshot.request.metadata.creation_timestamp
    assert created is not None, "the apiserver sets it"
    return created


def _deadline(snapshot: RecreateSnapshot) -> datetime | None:
    seconds = snapshot.request.spec.active_deadline_seconds
    return None if seconds is None else later(_created(snapshot), seconds)


def _grace_began(status: ContainerRecreateRequestStatus, now: datetime) -> ContainerRecreateRequestStatus:
    others = [condition for condition in status.conditions if condition.type != PRE_RECREATE_GRACE]
    return msgspec.structs.replace(status, conditions=[*others, _grace_condition(now.replace(microsecond=0))])


def _status_patch(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus) -> Patch | None:
    """Return a patch of the changed members and the phase, which a status always needs."""
    old: Json = msgspec.to_builtins(snapshot.request.status)
    new: Json = msgspec.to_builtins(status)
    changes = {member: value for member, value in new.items() if old.get(member) != value}
    if not changes:
        return None
    return patch_of(
        RECREATE_REQUEST,
        snapshot.request.metadata,
        Intent.STATUS,
        _cause(status, changes),
        phase="status",
        body={"status": {"phase": status.phase} | changes},
        subresource="status",
        on_version=True,
    )


def _cause(status: ContainerRecreateRequestStatus, changes: Json) -> str:
    if "phase" in changes:
        return f"{status.phase}: {status.message}" if status.message else status.phase
    if "containerRecreateStates" in changes:
        return "progress of the node's agent"
    return "unready grace period" if "conditions" in changes else "new containers"


def _explained(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus, now: datetime, made: Plan) -> Plan:
    """Return the plan with the reasons and numbers that explain it."""
    return msgspec.structs.replace(made, reasons=why.reasons(snapshot, status, now), numbers=why.numbers(status))


def _grace_due(request: ContainerRecreateRequest) -> bool:
    """Report whether the request asks for a grace period that has not begun."""
    return request.spec.strategy.unready_grace_period_seconds is not None and request.grace_since is None


def _keep_not_ready(request: ContainerRecreateRequest, pod: Pod, now: datetime) -> Chain:
    """Return the writes that make the pod not ready; none if it is already, or has no gate for it."""
    if POD_READY not in pod.gates:
        return ()
    edit = PodEdit(pod, Intent.UPDATE, "unready grace period", phase="")
    add_blocker(edit, _holder(request), now)
    return (*_with_finalizer(request), *edit.chain())


def _grace_condition(now: datetime) -> Condition:
    """Return the condition that starts the grace period."""
    return Condition(
        type=PRE_RECREATE_GRACE,
        status="True",
        reason=PRE_RECREATE_GRACE,
        message=GRACE_MESSAGE,
        last_transition_time=now,
    )


def _release(request: ContainerRecreateRequest, pod: Pod | None, now: datetime) -> Chain:
    """Return the writes on pod and metadata when the request is over: release the pod, then the request.

    The label is removed too, so that agents no longer get the request; a request that is being deleted keeps it.
    """
    metadata: Json = {}
    released: Chain = ()
    if RECREATE_UNREADY in request.metadata.finalizers:
        metadata["finalizers"] = [name for name in request.metadata.finalizers if name != RECREATE_UNREADY]
        if pod is not None:
            edit = PodEdit(pod, Intent.UPDATE, "unready grace period is over", phase="")
            remove_blocker(edit, _holder(request), now)
            released = edit.chain()
    if RECREATE_ACTIVE in request.metadata.labels and request.metadata.deletion_timestamp is None:
        metadata["labels"] = {RECREATE_ACTIVE: None}
    return (*released, _metadata_patch(request, metadata, "release the request")) if metadata else ()


def _with_finalizer(request: ContainerRecreateRequest) -> Chain:
    if RECREATE_UNREADY in request.metadata.finalizers:
        return ()
    finalizers = [*request.metadata.finalizers, RECREATE_UNREADY]
    return (_metadata_patch(request, {"finalizers": finalizers}, "unready grace period"),)


def _metadata_patch(request: ContainerRecreateRequest, metadata: Json, cause: str) -> Patch:
    """Return a patch for this version only: a merge patch replaces the whole list of finalizers."""
    body = {"metadata": metadata}
    return patch_of(RECREATE_REQUEST, request.metadata, Intent.UPDATE, cause, body=body, on_version=True)


def _holder(request: ContainerRecreateRequest) -> Blocker:
    return Blocker(HOLDER, f"{request.metadata.namespace}/{request.metadata.name}")
