"""Causes of pods that are being deleted, or have finished."""

from datetime import datetime, timedelta

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import later, rfc3339
from flotilla_common.workload.causes.cause import Cause, PodContext, bare, seconds_word
from flotilla_common.workload.causes.containers import exit_cause
from flotilla_common.workload.causes.nodes import node_trouble

CONFIRMED_WITHIN = timedelta(seconds=15)
"""Time after the grace period for a kubelet to kill the remaining processes and delete the pod."""

_COLLECTOR = {
    "foregroundDeletion": "the garbage collector, which waits for what the pod owns",
    "orphan": "the garbage collector",
}


def has_done_its_work(pod: Pod) -> bool:
    """Report whether a pod that should end, as those of jobs, has succeeded and was not deleted."""
    stays = pod.metadata.deletion_timestamp is None
    return stays and pod.status.phase == "Succeeded" and pod.spec.restart_policy in ("Never", "OnFailure")


def over_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return why the pod is finished for good: it ran to its end, was rejected by its kubelet, or evicted."""
    if pod.status.phase not in ("Failed", "Succeeded") or pod.metadata.deletion_timestamp is not None:
        return None
    told = bare(": ".join(filter(None, (pod.status.reason, pod.status.message))))
    where = f"on node {pod.spec.node_name}" if pod.spec.node_name else ""
    if pod.status.reason:
        return Cause(code=pod.status.reason, message=f"it has failed: {told}", detail=where)
    if pod.status.phase == "Succeeded":
        return Cause(code="PodCompleted", message="it ran to its end, but should keep running", detail=where)
    guilty = _failed_container(pod, around)
    told = guilty.message if guilty is not None else told
    detail = ", ".join(filter(None, (where, guilty.detail if guilty is not None else "")))
    return Cause(code="PodFailed", message=f"it has failed{f': {told}' if told else ''}", detail=detail)


def _failed_container(pod: Pod, around: PodContext) -> Cause | None:
    """Return the cause of the first container that failed, init containers first."""
    specs = {one.name: one for one in (*pod.spec.init_containers, *pod.spec.containers)}
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        end = status.state.terminated
        if end is not None and end.exit_code:
            return exit_cause(f"container {status.name}", specs.get(status.name), status, end, around)
    return None


def terminating_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return why a deleted pod is still there; None if it is not deleted."""
    if pod.metadata.deletion_timestamp is None:
        return None
    runs = any(status.state.running is not None for status in pod.status.container_statuses)
    trouble = node_trouble(pod.spec.node_name, around)
    if trouble and (runs or not pod.metadata.finalizers):
        text = f"terminating{_since(pod)}, and its end cannot be confirmed: {trouble}"
        return Cause(code="TerminatingOnLostNode", message=text)
    if held := pod.metadata.finalizers:
        who = ", ".join(f"{one} ({_COLLECTOR[one]})" if one in _COLLECTOR else one for one in held)
        text = f"terminating, held by finalizer {who}, until whoever set that removes it"
        return Cause(code="HeldByFinalizer", message=text, detail=_since(pod).strip())
    return _overdue(pod, around) or _in_grace(pod, around)


def stuck_terminating(pod: Pod, now: datetime) -> bool:
    """Report whether a deleted pod needs action: a finalizer holds it, or its end is not confirmed in time."""
    until = pod.metadata.deletion_timestamp
    return until is not None and (bool(pod.metadata.finalizers) or now >= later(until, CONFIRMED_WITHIN))


def _since(pod: Pod) -> str:
    """Return the time of the deletion as text."""
    until, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    return f" since {rfc3339(later(until, -(grace or 0)))}" if until is not None else ""


def _overdue(pod: Pod, around: PodContext) -> Cause | None:
    until = pod.metadata.deletion_timestamp
    if around.now is None or until is None or around.now < later(until, CONFIRMED_WITHIN):
        return None
    text = f"terminating{_since(pod)}: its grace period ended at {rfc3339(until)}, and the kubelet of node "
    return Cause(code="TerminationOverdue", message=f"{text}{pod.spec.node_name or '-'} has not confirmed its end")


def _in_grace(pod: Pod, around: PodContext) -> Cause:
    until, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    ends = f"its grace period of {seconds_word(grace or 0)} ends at {rfc3339(until)}" if until is not None else ""
    hook = next((bare(event.message) for event in around.events if event.reason == "FailedPreStopHook"), "")
    text = f"terminating: {ends}; a preStop hook runs, or a process does not end at SIGTERM"
    return Cause(code="Terminating", message=f"{text}{f'; {hook}' if hook else ''}", stuck=False)
