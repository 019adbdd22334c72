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
from flotilla_common.workload.causes import LOOKED_AT, Cause, PodContext, cause_of, grouped
from flotilla_common.workload.causes.cause import bare
from flotilla_common.workload.causes.containers import exit_cause, exit_word
from flotilla_common.workload.causes.finding import MOST_GROUPS
from flotilla_common.workload.causes.starting import IMAGE_REASONS, ON_ITS_WAY, image_cause
from flotilla_jobs.ephemeraljob.status import DEADLINE_EXCEEDED, deadline_of
from flotilla_jobs.ephemeraljob.targets import Target, TargetPods, container_state, parallelism_of


def explain_deletion(job: EphemeralJob, builder: PlanBuilder) -> None:
    """Add the reason of a job that is being deleted."""
    finalizers = ", ".join(job.metadata.finalizers)
    text = "is being deleted; containers that it put into pods run on"
    builder.reason(State.PROGRESSING, "Terminating", f"{text}; held by {finalizers}" if finalizers else text)


def explain_completed(job: EphemeralJob, targets: TargetPods, ttl: int, builder: PlanBuilder) -> None:
    """Add the result of a completed job, and the failures of its pods."""
    status = job.status
    done = f"{status.succeeded} of {pods_word(status.match)} succeeded, {status.failed} failed"
    late = any(condition.reason == DEADLINE_EXCEEDED for condition in status.conditions)
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
        _explain_no_pods(job, targets, builder)
    if targets.conflicts:
        left = f"{pods_word(len(targets.conflicts))} left alone: {named(targets.conflicts)}"
        text = f"another ephemeral container has a name of the template ({_names(job)}) there, and cannot be removed"
        builder.reason(State.NOTE, "Conflicts", f"{left}; {text}", targets.conflicts)


def _explain_no_pods(job: EphemeralJob, targets: TargetPods, builder: PlanBuilder) -> None:
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


PodCauses = Iterator[tuple[str, Cause]]


def explain_waiting(targets: Sequence[Target], builder: PlanBuilder) -> None:
    """Add why containers of these pods do not start."""
    causes = [cause for target in targets[:LOOKED_AT] for cause in _waiting(target)]
    _add_groups("WaitingForContainers", causes, builder)


def explain_failed(targets: Sequence[Target], builder: PlanBuilder) -> None:
    """Add how containers of these pods failed."""
    _add_groups("FailedPods", [cause for target in targets[:LOOKED_AT] for cause in _failed(target)], builder)


def _add_groups(code: str, causes: Sequence[tuple[str, Cause]], builder: PlanBuilder) -> None:
    for group in grouped(causes)[:MOST_GROUPS]:
        builder.reason(State.STUCK, code, group.sentence, group.pods, symptom=True)


def _waiting(target: Target) -> PodCauses:
    pod = target.pod
    if pod.status.phase == "Pending" and (cause := cause_of(pod)) is not None and cause.stuck:
        yield pod.metadata.name, cause
        return
    for status in _statuses(target):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ON_ITS_WAY:
            yield pod.metadata.name, _waiting_cause(pod, status.name, waiting)


def _waiting_cause(pod: Pod, name: str, waiting: WaitingState) -> Cause:
    if waiting.reason in IMAGE_REASONS:
        image = next((container.image for container in pod.spec.ephemeral_containers if container.name == name), "")
        return image_cause(name, image, waiting, PodContext())
    details = bare(waiting.message)
    return Cause(
        code=waiting.reason, message=f"container {name} waits, {waiting.reason}{f': {details}' if details else ''}"
    )


def _failed(target: Target) -> PodCauses:
    for status in _statuses(target):
        if container_state(status) == FAILED:
            yield target.pod.metadata.name, _ended(status)


def _ended(status: ContainerStatus) -> Cause:
    name, end = f"container {status.name}", status.state.terminated
    if end is None:
        details = bare(status.state.waiting.message) if status.state.waiting is not None else ""
        return Cause(code="StartError", message=f"{name} cannot be started{f': {details}' if details else ''}")
    cause = exit_cause(name, None, status, end, PodContext())
    if cause.code != "CrashLoopBackOff":
        return cause
    return msgspec.structs.replace(cause, message=f"{name} ended with {exit_word(end)}")


def _statuses(target: Target) -> Sequence[ContainerStatus]:
    return [status for status in target.pod.status.ephemeral_container_statuses if status.name in target.containers]
