"""Plans one pass over one EphemeralJob, from snapshot to plan (ephemeraljob.md §5, §6).

Each pod is written once, on the planned version: no other container can have been added in between, and a pod written
by an earlier pass is refused until its containers are seen. So no pod gets them twice, and foreign containers are not
touched: the patch would merge two of the same name. NotFound (the pod is gone, or the cluster has no ephemeral
containers) is no failure, and nothing is retried before something changes.
"""

from collections.abc import Sequence
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mappings
from flotilla_common.api.kinds.ephemeraljob.types import (
    DEFAULT_TTL_SECONDS,
    EPHEMERAL_JOB,
    FINALIZER,
    JOB_UID_ENV,
    PAUSED,
    EphemeralJob,
)
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Event, Intent, Patch, PatchType, Plan, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.writes import delete_finished, patch_of, status_patch, write_finalizer
from flotilla_common.workload.pod_creation import first_batch
from flotilla_jobs.ephemeraljob import why
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot
from flotilla_jobs.ephemeraljob.status import deadline_of, is_urgent, status_of
from flotilla_jobs.ephemeraljob.targets import Target, TargetPods, parallelism_of

PHASE = "inject"


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


def next_pods(job: EphemeralJob, targets: TargetPods, *, failed: bool) -> Sequence[Target]:
    """Return the pods that get their containers in this pass: at most one after a pass that `failed`."""
    if not job.spec.template.ephemeral_containers:
        return ()
    free = max(parallelism_of(job) - len(targets.at_work), 0)
    return targets.open[: min(free, 1 if failed else MAX_CHAINS_PER_PASS)]


def injection(job: EphemeralJob, pod: Pod) -> Patch:
    """Return the patch that adds all containers of the template at once."""
    failure = f"failed to create ephemeral container in pod {pod.metadata.namespace}/{pod.metadata.name}: "
    containers = [_marked(container, job.metadata.uid) for container in job.spec.template.ephemeral_containers]
    return patch_of(
        POD,
        pod.metadata,
        Intent.INJECT,
        f"inject {', '.join(sorted(job.spec.template.names))}",
        body={"spec": {"ephemeralContainers": containers}},
        patch_type=PatchType.STRATEGIC,
        subresource="ephemeralcontainers",
        on_version=True,
        phase=PHASE,
        on_failure=Event("CreateFailed", failure, warning=True),
    )


def _marked(container: Json, uid: str) -> Json:
    """Return the container with the variable that identifies the job, replacing one of the template."""
    env = [variable for variable in mappings(container.get("env")) if variable.get("name") != JOB_UID_ENV]
    return {**container, "env": [*env, {"name": JOB_UID_ENV, "value": uid}]}
