"""Plans one pass over one EphemeralJob, from snapshot to plan (ephemeraljob.md §5)."""

from collections.abc import Sequence
from datetime import datetime

from flotilla_common.api.kinds.ephemeraljob.types import (
    DEFAULT_TTL_SECONDS,
    EPHEMERAL_JOB,
    FINALIZER,
    PAUSED,
    EphemeralJob,
)
from flotilla_common.control.plan import Plan, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import delete_finished, status_patch, write_finalizer
from flotilla_common.workload.newpods import first_batch
from flotilla_jobs.ephemeraljob import why
from flotilla_jobs.ephemeraljob.inject import PHASE, injection, next_pods
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot
from flotilla_jobs.ephemeraljob.status import deadline_of, is_urgent, status_of
from flotilla_jobs.ephemeraljob.targets import Target, TargetPods


def plan(snapshot: EphemeralJobSnapshot, now: datetime) -> Plan:
    """Plan what the job needs now."""
    job, builder = snapshot.job, PlanBuilder()
    finalizers = job.metadata.finalizers
    if job.metadata.deletion_timestamp is not None:
        # A container cannot be removed from a pod: injected ones keep running.
        if FINALIZER in finalizers:
            builder.stage([(write_finalizer(EPHEMERAL_JOB, job.metadata, FINALIZER, present=False),)])
        why.explain_deletion(job, builder)
        return builder.plan()
    if FINALIZER not in finalizers:
        builder.stage([(write_finalizer(EPHEMERAL_JOB, job.metadata, FINALIZER, present=True),)])
    if job.status.completion_time is not None:
        return _completed(snapshot, job.status.completion_time, builder, now)
    if snapshot.problem:
        builder.reason(State.STUCK, "InvalidSpec", f"the selector cannot be read: {snapshot.problem}")
        builder.errors.append(("plan", snapshot.problem))
        return builder.plan()
    return _running(snapshot, builder, now)


def _completed(snapshot: EphemeralJobSnapshot, since: datetime, builder: PlanBuilder, now: datetime) -> Plan:
    """Plan for a completed job: only its deletion is left."""
    job, given = snapshot.job, snapshot.job.spec.ttl_seconds_after_finished
    ttl = DEFAULT_TTL_SECONDS if given is None else given
    builder.stage(
        [delete_finished(EPHEMERAL_JOB, job.metadata, ttl=ttl, since=since, now=now, deadlines=builder.deadlines)]
    )
    why.explain_completed(job, TargetPods.of(job, snapshot.pods), ttl, builder)
    return builder.plan()


def _running(snapshot: EphemeralJobSnapshot, builder: PlanBuilder, now: datetime) -> Plan:
    """Inject into as many pods as parallelism allows, unless the job is paused or ends with this pass."""
    job = snapshot.job
    targets = TargetPods.of(job, snapshot.pods)
    status = status_of(job, targets, now)
    chosen: Sequence[Target] = ()
    if status.completion_time is None and status.phase != PAUSED:
        chosen = next_pods(job, targets, failed=PHASE in snapshot.failures)
    _inject(job, targets, chosen, builder)
    deadline = deadline_of(job, now)
    if deadline is not None:
        builder.deadlines.passed(deadline, now)
    why.explain(job, targets, status, chosen, builder, now)
    counts = ("match", "running", "succeeded", "failed", "waiting")
    return builder.plan(
        status=status_patch(EPHEMERAL_JOB, job.metadata, job.status, status, *counts, on_version=True),
        urgent_status=is_urgent(job.status, status),
        numbers={name: getattr(status, name) for name in counts},
    )


def _inject(job: EphemeralJob, targets: TargetPods, chosen: Sequence[Target], builder: PlanBuilder) -> None:
    """Inject in slow start: what refuses one pod will refuse the others."""
    there = len(targets.chosen) - len(targets.open)
    batch = first_batch(there, len(chosen), len(chosen), failed=False)
    builder.stage([(injection(job, target.pod),) for target in chosen], slow_start=batch)
