"""Plans one pass of an ImagePullJob (imagepull.md §5): secrets, as many nodes as may pull at once, status, reasons."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagepulljob.types import FINALIZER, IMAGE_PULL_JOB, ImagePullJob, ImagePullJobStatus
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.numbers import whole_number
from flotilla_common.control.plan import Plan, Reason, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, nodes_word
from flotilla_common.control.writes import delete_finished, status_patch, write_finalizer
from flotilla_jobs.imagepull.assignment import Assignment
from flotilla_jobs.imagepull.secret_copies import PullSecrets, copy_secrets, release
from flotilla_jobs.imagepull.snapshot import PullJobSnapshot
from flotilla_jobs.imagepull.status import Progress, deadline_of, status_of
from flotilla_jobs.unreachable_agents import no_agent, unreachable

UnreachableAgents = Mapping[str, datetime]
"""Nodes whose agent does not answer, and since when."""


SOONEST = timedelta(seconds=1)
"""Minimum time before a deadline or a silent node requeues the job."""


def plan(snapshot: PullJobSnapshot, now: datetime) -> Plan:
    """Plan what the job needs now."""
    job = snapshot.job
    if job.metadata.deletion_timestamp is not None:
        builder = PlanBuilder()
        _release(snapshot, builder)
        return builder.plan()
    if job.status.completion_time is not None:
        return _completed(snapshot, job.status.completion_time, now)
    if snapshot.problem:
        return _refused("InvalidSelector", snapshot.problem)
    if problem := _problem(job):
        return _refused("InvalidSpec", problem)
    return _running(snapshot, now)


def _refused(code: str, problem: str) -> Plan:
    """Plan nothing until the spec changes."""
    return Plan(reasons=(Reason(State.STUCK, code, problem),), errors=(("plan", problem),))


def _problem(job: ImagePullJob) -> str:
    """Return why the job cannot run, or "" if it can."""
    # Admission refuses such a job: this one was stored without admission.
    try:
        ImageName.parse(job.spec.image)
    except ValueError as fault:
        return f"spec.image: {fault}"
    try:
        parallelism_of(job)
    except ValueError as fault:
        return f"spec.parallelism: {fault}"
    return ""


def _release(snapshot: PullJobSnapshot, builder: PlanBuilder) -> None:
    """Release the copies of secrets, then remove the finalizer that protects them."""
    finalizers = snapshot.job.metadata.finalizers
    builder.stage(release(snapshot))
    if FINALIZER in finalizers:
        builder.stage([(write_finalizer(IMAGE_PULL_JOB, snapshot.job.metadata, FINALIZER, present=False),)])


def _completed(snapshot: PullJobSnapshot, since: datetime, now: datetime) -> Plan:
    """Clean up and delete a completed job."""
    job, builder = snapshot.job, PlanBuilder()
    _release(snapshot, builder)
    # A job of a list that still runs is kept: the list would create it again, and nodes would pull again.
    ttl = None if snapshot.of_running_list else job.spec.completion_policy.ttl_seconds_after_finished
    builder.stage(
        [delete_finished(IMAGE_PULL_JOB, job.metadata, ttl=ttl, since=since, now=now, deadlines=builder.deadlines)]
    )
    explain_completed(job.status, builder)
    return builder.plan()


def _running(snapshot: PullJobSnapshot, now: datetime) -> Plan:
    job = snapshot.job
    image = ImageName.parse(job.spec.image)
    secrets = copy_secrets(snapshot)
    progress = Progress.of(snapshot.nodes, job.metadata.uid, image, secrets.references)
    status = status_of(job, len(snapshot.nodes), progress, now)
    chosen: Sequence[NodeImage] = ()
    if status.completion_time is None and not secrets.unread:
        chosen = _chosen(snapshot, progress, status.active)
    assignment = Assignment(
        job=job, image=image, secrets=secrets.references, default_ttl=snapshot.options.default_ttl, now=now
    )
    builder = PlanBuilder()
    if FINALIZER not in job.metadata.finalizers:
        # Set before the first copy is created.
        builder.stage([(write_finalizer(IMAGE_PULL_JOB, job.metadata, FINALIZER, present=True),)])
    builder.stage(secrets.chains)
    builder.stage([assignment.write_to(node) for node in chosen])
    quiet = unreachable(progress.unanswered, now, builder.deadlines)
    explain(snapshot, progress, quiet, secrets, parallelism_of(job), builder)
    builder.deadlines.until(deadline_of(job))
    builder.deadlines.not_before(now + SOONEST)
    counts = ("desired", "active", "succeeded", "failed")
    return builder.plan(
        status=status_patch(IMAGE_PULL_JOB, job.metadata, job.status, status, *counts),
        urgent_status=status.completion_time is not None or job.status.start_time is None,
        numbers={name: getattr(status, name) for name in counts} | {"open": len(progress.open)},
    )


def parallelism_of(job: ImagePullJob) -> int:
    """Return the number of nodes that may pull at once.

    Raises ValueError when admission would refuse the value.
    """
    return 1 if job.spec.parallelism is None else whole_number(job.spec.parallelism)


def _chosen(snapshot: PullJobSnapshot, progress: Progress, active: int) -> Sequence[NodeImage]:
    """Return the next nodes: in the order in which the job's workload updates its pods, else by name."""
    slots = max(parallelism_of(snapshot.job) - active, 0)
    last = len(snapshot.order)
    ordered = sorted(progress.open, key=lambda node: snapshot.order.get(node.metadata.name, last))
    return ordered[:slots]


def explain(
    snapshot: PullJobSnapshot,
    progress: Progress,
    quiet: UnreachableAgents,
    secrets: PullSecrets,
    parallelism: int,
    builder: PlanBuilder,
) -> None:
    """Add the reasons of a job that is not completed."""
    if not snapshot.nodes:
        builder.reason(State.STUCK, "NoMatchingNodes", "no node matches, or none of them has a NodeImage yet")
    if secrets.unread:
        builder.reason(State.WAITING, "WaitingForSecrets", f"pull secrets {', '.join(secrets.unread)} are being read")
    elif secrets.absent:
        absent = ", ".join(secrets.absent)
        builder.reason(State.STUCK, "SecretsMissing", f"pull secrets {absent} do not exist; pulling without them")
    if progress.open and not parallelism:
        builder.reason(State.HELD, "Paused", f"paused: parallelism is 0, {nodes_word(len(progress.open))} to go")
    if quiet:
        builder.reasons.append(no_agent(quiet))
    _explain_pulls(progress, quiet, parallelism, builder)
    if progress.failed:
        names = sorted(progress.failed)
        first = progress.failed[names[0]] or "nothing"
        text = f"{nodes_word(len(names))} could not pull: {named(names)}; {names[0]} says: {first}"
        builder.reason(State.STUCK, "FailedOnNodes", text, names, symptom=True)


def explain_completed(status: ImagePullJobStatus, builder: PlanBuilder) -> None:
    """Add the result of a completed job."""
    text = f"{status.message}: {status.succeeded} of {status.desired} nodes have the image"
    builder.reason(State.DONE, "Completed", text, status.failed_nodes)


def _explain_pulls(progress: Progress, quiet: UnreachableAgents, parallelism: int, builder: PlanBuilder) -> None:
    busy = sorted(name for name in progress.pulling if name not in quiet)
    if not busy and not (quiet and progress.open):
        return
    message = f"{nodes_word(len(busy))} at work: {named(busy)}" if busy else "no node is at work"
    if progress.open:
        message += f"; {len(progress.open)} more wait, parallelism is {parallelism}"
    builder.reason(State.WAITING, "WaitingForNodes", message, busy)
