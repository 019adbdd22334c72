"""Plans one pass over one BroadcastJob, from snapshot to plan with its reasons (broadcastjob.md §4.2).

A pass sees all earlier writes, so it is always a full one: there are no expectations to wait for. Counts are those at
its start; the next pass counts what it creates and deletes.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.broadcastjob.types import (
    BROADCAST_JOB,
    FAIL_FAST,
    FAILED,
    PAUSE,
    PAUSED,
    RUNNING,
    BroadcastJobStatus,
)
from flotilla_common.control.plan import Event, Frozen, Intent, Plan, Reason, State
from flotilla_common.control.planbuilder import PlanBuilder, refused
from flotilla_common.control.text import named, nodes_word, pods_word
from flotilla_common.control.writes import delete_finished
from flotilla_common.workload.causes import PodContext, explain_pods, stuck_terminating
from flotilla_common.workload.pernode import explain_excluded
from flotilla_common.workload.placement import node_of
from flotilla_jobs.broadcastjob.context import PlanContext, context_of, count
from flotilla_jobs.broadcastjob.pod_actions import delete, plan_creates, plan_misplaced, plan_readiness
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot
from flotilla_jobs.broadcastjob.status import completed, failed, has_ended, patch_of_status, tally

_ENDED = "ended"
"""Key of the note with the uids of pods that were deleted because the job fails."""


def plan(snapshot: BroadcastJobSnapshot, now: datetime) -> Plan:
    """Plan one pass. Never raises for what users can write into a BroadcastJob: faults become reasons."""
    job = snapshot.job
    if job.metadata.deletion_timestamp is not None:
        return Plan(reasons=(Reason(State.PROGRESSING, "Terminating", "the job is being deleted: nothing is done"),))
    if has_ended(job):
        return _ended_plan(snapshot, now)
    try:
        context = context_of(snapshot, now)
    except ValueError as error:
        return refused("InvalidTemplate", f"nothing is done: {error}")
    builder = PlanBuilder()
    for pod, node in context.node_view.duplicates:
        text = f"Duplicated pod {pod} found on same node {node}"
        builder.tell_once(Event("DuplicatePodCreatedOnSameNode", text, warning=True), context.snapshot.notes)
    if job.status.phase == FAILED:  # with type Never, no condition ends it
        builder.reason(State.STUCK, "Failed", "the job has failed: no more pods are created", symptom=True)
        return _finish(context, FAILED, builder)
    if job.spec.paused:
        builder.reason(State.HELD, "PausedByUser", "paused by the user: spec.paused is true, no pod is created")
        return _finish(context, PAUSED, builder)
    if context.counts.failed and job.spec.failure_policy.type == PAUSE:
        return _pause(context, builder)
    return _go_on(context, builder)


def _ended_plan(snapshot: BroadcastJobSnapshot, now: datetime) -> Plan:
    """Plan for an ended job: only its deletion is left."""
    job, builder = snapshot.job, PlanBuilder()
    ttl, since = job.spec.completion_policy.ttl_seconds_after_finished, job.status.completion_time or now
    builder.stage(
        [delete_finished(BROADCAST_JOB, job.metadata, ttl=ttl, since=since, now=now, deadlines=builder.deadlines)],
    )
    explain_end(snapshot, now, builder)
    return builder.plan()


def _pause(context: PlanContext, builder: PlanBuilder) -> Plan:
    """Hold the job until the failed pods are deleted or the policy changes."""
    failed = context.counts.failed
    text = f"failurePolicy is Pause, and {named(failed)} failed: delete what failed, or change the policy"
    builder.reason(State.STUCK, "PausedByFailure", f"paused: {text}", failed, symptom=True)
    event = Event("Paused", "job is paused, due to failed pod", warning=True)
    return _finish(context, PAUSED, builder, event=event)


def _go_on(context: PlanContext, builder: PlanBuilder) -> Plan:
    failure = failure_of(context, builder)
    if failure is not None:
        plan_failure(context, failure, _counted(context, RUNNING), builder)
        return _finish(context, RUNNING, builder, ends=True)
    plan_readiness(context, builder)
    plan_misplaced(context, builder)
    plan_creates(context, builder)
    if context.is_complete:
        _complete(context, builder)
        return _finish(context, RUNNING, builder, ends=True)
    event = Event("Continue", "continue to process job")
    return _finish(context, RUNNING, builder, event=event if context.job.status.phase == PAUSED else None)


def _complete(context: PlanContext, builder: PlanBuilder) -> None:
    """Write the final condition, after the pods that have to go are deleted."""
    meta, status = context.job.metadata, completed(_counted(context, RUNNING), context.now)
    text = f"Job {meta.namespace}/{meta.name} is completed, {tally(status)}"
    patch = patch_of_status(context.job, status, Event("JobComplete", text))
    builder.stage([(patch,)] if patch is not None else [])
    builder.reason(State.DONE, "Completed", f"every matching node has run its pod: {tally(status)}")


def _counted(context: PlanContext, phase: str) -> BroadcastJobStatus:
    counts = context.counts
    return msgspec.structs.replace(
        context.job.status,
        start_time=context.start,
        phase=phase,
        active=len(counts.active),
        succeeded=counts.succeeded,
        failed=len(counts.failed),
        desired=context.node_view.desired,
    )


def _finish(
    context: PlanContext, phase: str, builder: PlanBuilder, *, event: Event | None = None, ends: bool = False
) -> Plan:
    """Return the plan with the status, unless a stage writes the final one.

    `event` is sent with a new phase.
    """
    explain(context, builder)
    status, stored = _counted(context, phase), context.job.status
    fresh = (status.phase, status.start_time) != (stored.phase, stored.start_time)
    numbers = {
        "desired": status.desired,
        "active": status.active,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "waiting": len(context.node_view.waiting),
    }
    if context.parallelism is not None:
        numbers["parallelism"] = context.parallelism
    return builder.plan(
        status=None if ends else patch_of_status(context.job, status, event if fresh else None),
        urgent_status=fresh,
        numbers=numbers,
    )


class Failure(Frozen):
    """The reason of a job's failure."""

    reason: str  # of the event
    message: str
    announced: bool = False  # is the event also sent before the active pods are deleted?


def failure_of(context: PlanContext, builder: PlanBuilder) -> Failure | None:
    """Return why the job fails now, or None if it goes on; adds the deadline to the waits."""
    if context.counts.failed and context.job.spec.failure_policy.type == FAIL_FAST:
        found = "failed pod is found"
        return Failure(reason=found, message=f"failure policy is FailurePolicyTypeFailFast and {found}", announced=True)
    if context.deadline is not None and builder.deadlines.passed(context.deadline, context.now):
        meta = context.job.metadata
        text = f"Job {meta.namespace}/{meta.name} was active longer than specified deadline"
        return Failure(reason="DeadlineExceeded", message=text)
    return None


def plan_failure(context: PlanContext, failure: Failure, status: BroadcastJobStatus, builder: PlanBuilder) -> None:
    """Delete the active pods, then write the final status."""
    if failure.announced and _ENDED not in context.snapshot.notes:
        builder.events.append(_event(failure, status))
    active = context.counts.active
    builder.stage([(delete(pod, Intent.CLEAN_UP, failure.message),) for pod in active])
    ended = _ended(context)
    # Pods deleted by earlier attempts are noted, because the job counts them as failed.
    builder.notes[_ENDED] = ",".join(sorted(ended))
    terminal = {pod.metadata.uid for pod in context.snapshot.pods if pod.status.phase in ("Failed", "Succeeded")}
    counted = msgspec.structs.replace(status, active=0, failed=status.failed + len(ended - terminal))
    verdict = failed(counted, failure.message, context.now)
    patch = patch_of_status(context.job, verdict, _event(failure, verdict))
    builder.stage([(patch,)] if patch is not None else [])
    text = f"{failure.message}: {tally(verdict)}"
    builder.reason(State.STUCK, "Failed", text, [*context.counts.failed, *active], symptom=True)


def _ended(context: PlanContext) -> set[str]:
    before = context.snapshot.notes.get(_ENDED, "")
    return {uid for uid in before.split(",") if uid} | {pod.metadata.uid for pod in context.counts.active}


def _event(failure: Failure, status: BroadcastJobStatus) -> Event:
    return Event(failure.reason, f"{failure.message}: {tally(status)}", warning=True)


def explain(context: PlanContext, builder: PlanBuilder) -> None:
    """Add the causes of pods that fail, do not start or do not go, and of nodes without a pod."""
    failed = context.counts.failed
    troubled = [pod for pod in context.counts.active if not pod.ready]
    troubled += [pod for pod in context.snapshot.pods if stuck_terminating(pod, context.now)]
    _explain_pods(context.snapshot, [*failed, *troubled], context.now, builder)
    if failed:
        text = f"{pods_word(len(failed))} failed: {named(failed)}"
        builder.reason(State.STUCK, "FailedPods", text, failed, symptom=True)
    if not context.node_view.desired:
        builder.reason(State.STUCK, "NoNodes", "no node matches: the job waits for one", symptom=True)
    elif not builder.reasons:
        _explain_progress(context, builder)
    explain_excluded(builder, context.node_view.excluded)


def _explain_progress(context: PlanContext, builder: PlanBuilder) -> None:
    desired, active = context.node_view.desired, context.counts.active
    done = sum(1 for pod in context.node_view.placed.values() if not pod.active)
    text = f"{done} of {nodes_word(desired)} done"
    if active or done < desired:
        builder.reason(State.WAITING, "Running", f"{text}, {pods_word(len(active))} at work", active)
    else:
        builder.reason(State.DONE, "AllNodesDone", f"{text}; completionPolicy Never: nodes that join get a pod, too")


def explain_end(snapshot: BroadcastJobSnapshot, now: datetime, builder: PlanBuilder) -> None:
    """Add how the job ended, and the pods that caused it."""
    job = snapshot.job
    (message,) = [each.message for each in job.status.conditions if each.type == job.status.verdict][:1]
    if job.status.verdict == "Failed":
        builder.reason(State.STUCK, "Failed", message, symptom=True)
    else:
        builder.reason(State.DONE, "Completed", message)
    failed = count(snapshot.pods, job.spec.failure_policy.restart_limit).failed
    _explain_pods(snapshot, failed, now, builder)


def _explain_pods(snapshot: BroadcastJobSnapshot, pods: Sequence[Pod], now: datetime, builder: PlanBuilder) -> None:
    names = {node_of(pod) for pod in pods}
    nodes = {node.metadata.name: node for node in snapshot.nodes if node.metadata.name in names}
    explain_pods(builder, pods, PodContext(now=now, nodes=nodes))
