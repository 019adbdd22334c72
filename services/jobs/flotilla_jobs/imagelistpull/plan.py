"""One pass of an ImageListPullJob (imagepull.md §7): a job for every image, and what has become of them."""

from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.kinds.imagelistpulljob.types import (
    IMAGE_LIST_PULL_JOB,
    ImageListPullJob,
    ImageListPullJobStatus,
)
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.control.plan import Chain, Create, Delete, Event, Patch, PatchType, Plan, Reason, Stage
from flotilla_jobs.imagelistpull.children import Family, child_body, template_hash
from flotilla_jobs.imagelistpull.snapshot import ListJobSnapshot
from flotilla_jobs.imagelistpull.status import status_of, status_patch
from flotilla_jobs.waits import Waits


def plan(snapshot: ListJobSnapshot, now: datetime) -> Plan:
    """What the list needs now. The garbage collector takes the jobs of one that is deleted."""
    job = snapshot.job
    if job.metadata.deletion_timestamp is not None:
        return Plan()
    wanted = template_hash(job.spec)
    label = () if job.metadata.labels.get(REVISION_LABEL) == wanted else (_labelled(job, wanted),)
    if job.status.completion_time is not None:
        return _completed(job, job.status.completion_time, now, label)
    family = Family.of(snapshot, wanted)
    status = status_of(job, family.kept, now)
    return Plan(
        stages=_stages(label, _created(snapshot, family, wanted), _deleted(family)),
        status=_status_write(job, status) if status != job.status else None,
        urgent_status=status.completion_time is not None or job.status.start_time is None,
        reasons=_reasons(status, family),
        numbers={"desired": status.desired, "active": status.active, "completed": status.completed},
    )


def _completed(job: ImageListPullJob, since: datetime, now: datetime, label: Chain) -> Plan:
    ttl = job.spec.completion_policy.ttl_seconds_after_finished
    waits = Waits()
    chains = (label,)
    if ttl is not None and waits.passed(since + timedelta(seconds=ttl), now):
        meta = job.metadata
        delete = Delete(
            resource=IMAGE_LIST_PULL_JOB,
            namespace=meta.namespace,
            name=meta.name,
            cause=f"completed {ttl} seconds ago",
            uid=meta.uid,
        )
        chains = ((delete,),)
    message = f"all images are done: {job.status.succeeded} of {job.status.desired} are on every node"
    return Plan(stages=_stages(*chains), wake_at=waits.next, reasons=(Reason(code="Completed", message=message),))


def _created(snapshot: ListJobSnapshot, family: Family, wanted: str) -> Stage | None:
    """New jobs in growing batches; the event comes with the last of them."""
    bodies = [child_body(snapshot, image, wanted) for image in family.missing]
    event = Event(reason="Successful create ImagePullJob", message=f"Create {len(bodies)} ImagePullJob")
    creates = [
        Create(
            resource=IMAGE_PULL_JOB,
            namespace=snapshot.job.metadata.namespace,
            name=body["metadata"]["name"],
            cause=f"pull {body['spec']['image']}",
            phase="create",
            body=body,
        )
        for body in bodies
    ]
    return _stage_with_event(creates, event, slow_start=1)


def _deleted(family: Family) -> Stage | None:
    event = Event(reason="Successful delete ImagePullJob", message=f"Delete {len(family.surplus)} ImagePullJob")
    return _stage_with_event([_deletion(child) for child in family.surplus], event)


def _deletion(child: ImagePullJob) -> Delete:
    meta = child.metadata
    return Delete(
        resource=IMAGE_PULL_JOB,
        namespace=meta.namespace,
        name=meta.name,
        cause="no longer in the list, or made from another template",
        phase="delete",
        uid=meta.uid,
    )


def _stage_with_event(actions: list[Create] | list[Delete], event: Event, slow_start: int = 0) -> Stage | None:
    if not actions:
        return None
    *others, last = actions
    chains = [(action,) for action in (*others, msgspec.structs.replace(last, on_success=event))]
    return Stage(chains=tuple(chains), slow_start=slow_start, stop_on_failure=False)


def _stages(*parts: Chain | Stage | None) -> tuple[Stage, ...]:
    stages = [part if isinstance(part, Stage) else Stage(chains=(part,)) for part in parts if part]
    return tuple(stages)


def _reasons(status: ImageListPullJobStatus, family: Family) -> tuple[Reason, ...]:
    reasons: list[Reason] = []
    behind = [child for child in family.kept if child.status.completion_time is None]
    if behind:
        names = tuple(child.metadata.name for child in behind[:5])
        message = f"waiting: {status.completed} of {status.desired} images are done, the next is {behind[0].spec.image}"
        reasons.append(Reason(code="WaitingForImages", message=message, objects=names))
    if status.failed_image_statuses:
        names = tuple(failure.image_pull_job for failure in status.failed_image_statuses[:5])
        message = f"{len(status.failed_image_statuses)} images failed somewhere, see their ImagePullJobs"
        reasons.append(Reason(code="FailedImages", message=message, objects=names))
    return tuple(reasons)


def _labelled(job: ImageListPullJob, wanted: str) -> Patch:
    return _patch(job, "template hash", {"metadata": {"labels": {REVISION_LABEL: wanted}}})


def _status_write(job: ImageListPullJob, status: ImageListPullJobStatus) -> Patch:
    return _patch(job, "status", {"status": status_patch(job.status, status)}, subresource="status")


def _patch(job: ImageListPullJob, cause: str, body: Json, *, subresource: str = "") -> Patch:
    meta = job.metadata
    return Patch(
        resource=IMAGE_LIST_PULL_JOB,
        namespace=meta.namespace,
        name=meta.name,
        cause=cause,
        body=body,
        uid=meta.uid,
        patch_type=PatchType.MERGE,
        subresource=subresource,
    )
