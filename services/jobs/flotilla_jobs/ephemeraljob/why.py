"""Explains to users and scripts the state of an EphemeralJob.

Problems of its containers are reported with the kubelet's reason and message, pods with the same problem together.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import ContainerStatus, Pod, WaitingState
from flotilla_common.api.kinds.ephemeraljob.types import FAILED, PAUSED, EphemeralJob, EphemeralJobStatus
from flotilla_common.api.meta import rfc3339
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.workload.causes import LOOKED_AT, Around, Cause, cause_of, grouped
from flotilla_common.workload.causes.containers import exit_cause, exit_word
from flotilla_common.workload.causes.finding import MOST_GROUPS
from flotilla_common.workload.causes.starting import IMAGE_REASONS, ON_ITS_WAY, image_cause
from flotilla_common.workload.causes.text import bare
from flotilla_jobs.ephemeraljob.inject import parallelism_of
from flotilla_jobs.ephemeraljob.status import DEADLINE_EXCEEDED, deadline_of
from flotilla_jobs.ephemeraljob.targets import Target, TargetPods, container_state


def explain_deletion(job: EphemeralJob, builder: PlanBuilder) -> None:
    """Add the reason of a job that is being deleted."""
    held = ", ".join(job.metadata.finalizers)
    text = "is being deleted; containers that it put into pods run on"
    builder.reason(State.PROGRESSING, "Terminating", f"{text}; held by {held}" if held else text)


def explain_completed(job: EphemeralJob, targets: TargetPods, ttl: int, builder: PlanBuilder) -> None:
    """Add the result of a completed job, and the failures of its pods."""
    status = job.status
    done = f"{status.succeeded} of {pods_word(status.match)} succeeded, {status.failed} failed"
    late = any(one.reason == DEADLINE_EXCEEDED for one in status.conditions)
    rest = f"{done}; is deleted {ttl} s after its end"
    if late:
        builder.reason(State.STUCK, DEADLINE_EXCEEDED, f"ended at its deadline: {rest}", symptom=True)
    else:
        builder.reason(State.DONE, "Completed", f"completed: {rest}")
    explain_failed(targets.of_state(FAILED), builder)


def explain(
    job: EphemeralJob,
    targets: TargetPods,
    status: EphemeralJobStatus,
    injecting: Sequence[Target],
    builder: PlanBuilder,
    now: datetime,
) -> None:
    """Add the reasons of a job that was not completed when the pass began."""
    if not job.spec.template.ephemeral_containers:
        builder.reason(
            State.STUCK, "InvalidSpec", "the template has no ephemeral containers: there is nothing to inject"
        )
        return
    _explain_pods(job, targets, builder)
    _explain_progress(job, targets, status, injecting, builder)
    explain_waiting(targets.at_work, builder)
    explain_failed(targets.of_state(FAILED), builder)
    if status.completion_time is None and not targets.open and not targets.at_work:
        _explain_end(job, status, builder, now)


def _explain_pods(job: EphemeralJob, targets: TargetPods, builder: PlanBuilder) -> None:
    """Add reasons if there are no pods, or pods that cannot be used."""
    if not targets.chosen:
        _explain_nobody(job, targets, builder)
    if targets.conflicts:
        left = f"{pods_word(len(targets.conflicts))} left alone: {named(targets.conflicts)}"
        text = f"another ephemeral container has a name of the template ({_names(job)}) there, and cannot be removed"
        builder.reason(State.NOTE, "Conflicts", f"{left}; {text}", targets.conflicts)


def _explain_nobody(job: EphemeralJob, targets: TargetPods, builder: PlanBuilder) -> None:
    """Add why there is no pod to work on."""
    if job.spec.replicas is not None and job.spec.replicas <= 0:
        builder.reason(State.HELD, "MatchedEmpty", f"replicas is {job.spec.replicas}")
        return
    free = " and has the names of the containers free" if targets.conflicts else ""
    text = f"no active pod matches {str(job.query) or 'the empty selector'}{free}"
    builder.reason(State.WAITING, "MatchedEmpty", text)


def _explain_progress(
    job: EphemeralJob,
    targets: TargetPods,
    status: EphemeralJobStatus,
    injecting: Sequence[Target],
    builder: PlanBuilder,
) -> None:
    """Add which pods are being injected, run, or wait."""
    if injecting:
        pods = [target.pod for target in injecting]
        builder.reason(State.PROGRESSING, "Injecting", f"injecting {_names(job)} into {named(pods)}", pods)
    if targets.at_work:
        pods = [target.pod for target in targets.at_work]
        builder.reason(State.WAITING, "Running", f"{pods_word(len(pods))} at work: {named(pods)}", pods)
    left = [target.pod for target in targets.open[len(injecting) :]]  # the first of them are injected into
    if status.phase == PAUSED:
        builder.reason(State.HELD, "PausedByUser", f"paused by spec.paused: {_to_go(left)}", left)
    elif left and status.completion_time is None:
        parallelism = parallelism_of(job)
        state = State.WAITING if parallelism > 0 else State.HELD
        builder.reason(state, "WaitingForParallelism", f"parallelism is {parallelism}, {_to_go(left)}", left)


def _to_go(pods: Sequence[Pod]) -> str:
    return f"{pods_word(len(pods))} to go{f': {named(pods)}' if pods else ''}"


def _explain_end(job: EphemeralJob, status: EphemeralJobStatus, builder: PlanBuilder, now: datetime) -> None:
    """Add why the job is not completed although all its pods are done."""
    deadline = deadline_of(job, now)
    until = "without a deadline, it stays" if deadline is None else f"it ends at its deadline, {rfc3339(deadline)}"
    if job.spec.replicas is not None and 0 < status.match < job.spec.replicas:
        text = f"{pods_word(status.match)} done, and no more match; replicas is {job.spec.replicas}"
        builder.reason(State.WAITING, "BelowReplicas", f"{text}; {until}")
    elif status.match:
        text = f"{status.succeeded} of {pods_word(status.match)} succeeded and {status.failed} failed"
        builder.reason(State.STUCK, "Mixed", f"{text}, which is neither success nor failure; {until}", symptom=True)


def _names(job: EphemeralJob) -> str:
    return ", ".join(sorted(job.spec.template.names))


Found = Iterator[tuple[str, Cause]]


def explain_waiting(targets: Sequence[Target], builder: PlanBuilder) -> None:
    """Add why containers of these pods do not start."""
    found = [one for target in targets[:LOOKED_AT] for one in _waiting(target)]
    _tell("WaitingForContainers", found, builder)


def explain_failed(targets: Sequence[Target], builder: PlanBuilder) -> None:
    """Add how containers of these pods failed."""
    _tell("FailedPods", [one for target in targets[:LOOKED_AT] for one in _failed(target)], builder)


def _tell(code: str, found: Sequence[tuple[str, Cause]], builder: PlanBuilder) -> None:
    for group in grouped(found)[:MOST_GROUPS]:
        builder.reason(State.STUCK, code, group.sentence, group.pods, symptom=True)


def _waiting(target: Target) -> Found:
    pod = target.pod
    if pod.status.phase == "Pending" and (cause := cause_of(pod)) is not None and cause.stuck:
        yield pod.metadata.name, cause
        return
    for status in _statuses(target):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ON_ITS_WAY:
            yield pod.metadata.name, _held(pod, status.name, waiting)


def _held(pod: Pod, name: str, waiting: WaitingState) -> Cause:
    if waiting.reason in IMAGE_REASONS:
        image = next((one.image for one in pod.spec.ephemeral_containers if one.name == name), "")
        return image_cause(name, image, waiting, Around())
    told = bare(waiting.message)
    return Cause(code=waiting.reason, message=f"container {name} waits, {waiting.reason}{f': {told}' if told else ''}")


def _failed(target: Target) -> Found:
    for status in _statuses(target):
        if container_state(status) == FAILED:
            yield target.pod.metadata.name, _ended(status)


def _ended(status: ContainerStatus) -> Cause:
    name, end = f"container {status.name}", status.state.terminated
    if end is None:
        told = bare(status.state.waiting.message) if status.state.waiting is not None else ""
        return Cause(code="StartError", message=f"{name} cannot be started{f': {told}' if told else ''}")
    cause = exit_cause(name, None, status, end, Around())
    if cause.code != "CrashLoopBackOff":
        return cause
    return msgspec.structs.replace(cause, message=f"{name} ended with {exit_word(end)}")


def _statuses(target: Target) -> Sequence[ContainerStatus]:
    """Return the statuses of the job's containers."""
    return [one for one in target.pod.status.ephemeral_container_statuses if one.name in target.containers]
