"""One pass of an ImagePullJob (imagepull.md §5): secrets, then as many nodes as may pull at once, then the status."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from flotilla_common.api.documents import Json
from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagepulljob.types import FINALIZER, IMAGE_PULL_JOB, ImagePullJob, ImagePullJobStatus
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.numbers import whole_number
from flotilla_common.control.plan import Chain, Delete, Patch, PatchType, Plan, Reason, Stage
from flotilla_jobs.imagepull import why
from flotilla_jobs.imagepull.push import Order
from flotilla_jobs.imagepull.secrets import Supply, release, supply
from flotilla_jobs.imagepull.snapshot import PullJobSnapshot
from flotilla_jobs.imagepull.status import Standing, deadline_of, status_of, status_patch
from flotilla_jobs.silence import silent
from flotilla_jobs.waits import Waits


def plan(snapshot: PullJobSnapshot, now: datetime) -> Plan:
    """What the job needs now."""
    job = snapshot.job
    if job.metadata.deletion_timestamp is not None:
        return Plan(stages=_let_go(snapshot))
    if job.status.completion_time is not None:
        return _completed(snapshot, job.status.completion_time, now)
    if snapshot.problem:
        return Plan(
            reasons=(Reason(code="InvalidSelector", message=snapshot.problem),), errors=(("plan", snapshot.problem),)
        )
    return _running(snapshot, now)


def _let_go(snapshot: PullJobSnapshot) -> tuple[Stage, ...]:
    """The copies of secrets, and then the finalizer that waits for them."""
    meta = snapshot.job.metadata
    stages = [release(snapshot)]
    if FINALIZER in meta.finalizers:
        stages.append(((_finalizers(snapshot.job, [one for one in meta.finalizers if one != FINALIZER]),),))
    return tuple(Stage(chains=chains) for chains in stages if chains)


def _completed(snapshot: PullJobSnapshot, since: datetime, now: datetime) -> Plan:
    """Nothing is done for a completed job but to end it. One of a list that still runs stays: it would be made anew,
    and pulled again."""
    meta, ttl = snapshot.job.metadata, snapshot.job.spec.completion_policy.ttl_seconds_after_finished
    stages = _let_go(snapshot)
    waits = Waits()
    if ttl is not None and not snapshot.of_running_list and waits.passed(since + timedelta(seconds=ttl), now):
        delete = Delete(
            resource=IMAGE_PULL_JOB,
            namespace=meta.namespace,
            name=meta.name,
            cause=f"completed {ttl} seconds ago",
            uid=meta.uid,
        )
        stages = (*stages, Stage(chains=((delete,),)))
    return Plan(stages=stages, wake_at=waits.next, reasons=why.completed(snapshot.job.status))


def _running(snapshot: PullJobSnapshot, now: datetime) -> Plan:
    job = snapshot.job
    image = ImageName.parse(job.spec.image)
    secrets = supply(snapshot)
    standing = Standing.of(snapshot.nodes, job.metadata.uid, image, secrets.references)
    status = status_of(job, len(snapshot.nodes), standing, now)
    chosen: Sequence[NodeImage] = ()
    if status.completion_time is None and not secrets.unread:
        chosen = _chosen(snapshot, standing, status.active)
    order = Order(job=job, image=image, secrets=secrets.references, default_ttl=snapshot.options.default_ttl, now=now)
    waits = Waits()
    quiet = silent(standing.unanswered, now, waits)
    return Plan(
        stages=_stages(job, secrets, [order.to(node) for node in chosen]),
        status=_status_write(job, status) if status != job.status else None,
        urgent_status=status.completion_time is not None or job.status.start_time is None,
        reasons=why.running(snapshot, standing, quiet, secrets, parallelism_of(job)),
        numbers={
            "desired": status.desired,
            "active": status.active,
            "succeeded": status.succeeded,
            "failed": status.failed,
            "open": len(standing.open),
        },
        wake_at=_wake_at(job, waits, now),
    )


def _wake_at(job: ImagePullJob, waits: Waits, now: datetime) -> datetime | None:
    """For the deadline, or to tell of nodes that are silent; not more often than once a second."""
    moments = [moment for moment in (deadline_of(job), waits.next) if moment is not None]
    return max(min(moments), now + timedelta(seconds=1)) if moments else None


def parallelism_of(job: ImagePullJob) -> int:
    """How many nodes may pull at once. ValueError for what admission would refuse."""
    return 1 if job.spec.parallelism is None else whole_number(job.spec.parallelism)


def _chosen(snapshot: PullJobSnapshot, standing: Standing, active: int) -> Sequence[NodeImage]:
    """The next nodes: in the order in which the job's workload updates its pods, else by name."""
    slots = max(parallelism_of(snapshot.job) - active, 0)
    last = len(snapshot.order)
    ordered = sorted(standing.open, key=lambda node: snapshot.order.get(node.metadata.name, last))
    return ordered[:slots]


def _stages(job: ImagePullJob, secrets: Supply, pushes: Sequence[Chain]) -> tuple[Stage, ...]:
    """The finalizer stands before the first copy is made, and copies before nodes are told of them."""
    finalizers = job.metadata.finalizers
    marked: tuple[Chain, ...] = () if FINALIZER in finalizers else ((_finalizers(job, [*finalizers, FINALIZER]),),)
    stages = (marked, secrets.chains, tuple(chain for chain in pushes if chain))
    return tuple(Stage(chains=chains) for chains in stages if chains)


def _finalizers(job: ImagePullJob, finalizers: Sequence[str]) -> Patch:
    meta = job.metadata
    return _patch(job, "finalizer", {"metadata": {"finalizers": list(finalizers)}}, version=meta.resource_version)


def _status_write(job: ImagePullJob, status: ImagePullJobStatus) -> Patch:
    return _patch(job, "status", {"status": status_patch(job.status, status)}, subresource="status")


def _patch(job: ImagePullJob, cause: str, body: Json, *, version: str = "", subresource: str = "") -> Patch:
    meta = job.metadata
    return Patch(
        resource=IMAGE_PULL_JOB,
        namespace=meta.namespace,
        name=meta.name,
        cause=cause,
        body=body,
        uid=meta.uid,
        resource_version=version,
        patch_type=PatchType.MERGE,
        subresource=subresource,
    )
