"""Plans one pass of an ImageListPullJob (imagepull.md §7): a job for every image, and the status from all of them."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.kinds.imagelistpulljob.types import (
    IMAGE_LIST_PULL_JOB,
    FailedImageStatus,
    ImageListPullJob,
    ImageListPullJobStatus,
)
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.control.plan import Action, Chain, Event, Intent, Patch, Plan, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import create_of, delete_finished, delete_of, patch_of, status_patch
from flotilla_jobs.imagelistpull.children import Children, child_body, template_hash
from flotilla_jobs.imagelistpull.snapshot import ListJobSnapshot


def plan(snapshot: ListJobSnapshot, now: datetime) -> Plan:
    """Plan what the list needs now. The garbage collector deletes the jobs of a deleted list."""
    job = snapshot.job
    if job.metadata.deletion_timestamp is not None:
        return Plan()
    builder, wanted = PlanBuilder(), template_hash(job.spec)
    if job.status.completion_time is not None:
        return _completed(job, job.status.completion_time, now, wanted)
    if job.metadata.labels.get(REVISION_LABEL) != wanted:
        builder.stage([(_labelled(job, wanted),)])
    children = Children.of(snapshot, wanted)
    status = status_of(job, children.kept, now)
    _create(snapshot, children, wanted, builder)
    _delete(children, builder)
    _give_reasons(status, children, builder)
    return builder.plan(
        status=status_patch(
            IMAGE_LIST_PULL_JOB, job.metadata, job.status, status, "desired", "active", "completed", "succeeded"
        ),
        urgent_status=status.completion_time is not None or job.status.start_time is None,
        numbers={"desired": status.desired, "active": status.active, "completed": status.completed},
    )


def _completed(job: ImageListPullJob, since: datetime, now: datetime, wanted: str) -> Plan:
    builder, ttl = PlanBuilder(), job.spec.completion_policy.ttl_seconds_after_finished
    delete = delete_finished(
        IMAGE_LIST_PULL_JOB, job.metadata, ttl=ttl, since=since, now=now, deadlines=builder.deadlines
    )
    if not delete and job.metadata.labels.get(REVISION_LABEL) != wanted:
        builder.stage([(_labelled(job, wanted),)])
    builder.stage([delete])
    done = f"{job.status.succeeded} of {job.status.desired}"
    builder.reason(State.DONE, "Completed", f"all images are done: {done} are on every node")
    return builder.plan()


def _create(snapshot: ListJobSnapshot, children: Children, wanted: str, builder: PlanBuilder) -> None:
    """Create missing jobs in slow start."""
    creates = [
        create_of(IMAGE_PULL_JOB, child_body(snapshot, image, wanted), Intent.CREATE, f"pull {image}", phase="create")
        for image in children.missing
    ]
    told = Event("Successful create ImagePullJob", f"Create {len(creates)} ImagePullJob")
    builder.stage(_told_by_the_last(creates, told), slow_start=1, stop_on_failure=False)


def _delete(children: Children, builder: PlanBuilder) -> None:
    """Delete surplus jobs."""
    cause = "no longer in the list, or made from another template"
    deletes = [
        delete_of(IMAGE_PULL_JOB, child.metadata, Intent.DELETE, cause, phase="delete") for child in children.surplus
    ]
    told = Event("Successful delete ImagePullJob", f"Delete {len(deletes)} ImagePullJob")
    builder.stage(_told_by_the_last(deletes, told), stop_on_failure=False)


def _told_by_the_last(actions: Sequence[Action], told: Event) -> list[Chain]:
    last = [msgspec.structs.replace(action, on_success=told) for action in actions[-1:]]
    return [(action,) for action in (*actions[:-1], *last)]


def _give_reasons(status: ImageListPullJobStatus, children: Children, builder: PlanBuilder) -> None:
    behind = [child for child in children.kept if child.status.completion_time is None]
    if behind:
        text = f"{status.completed} of {status.desired} images are done, the next is {behind[0].spec.image}"
        builder.reason(State.WAITING, "WaitingForImages", text, behind)
    failures = status.failed_image_statuses
    if failures:
        text = f"{len(failures)} images failed somewhere, see their ImagePullJobs"
        builder.reason(
            State.STUCK, "FailedImages", text, [failure.image_pull_job for failure in failures], symptom=True
        )


def _labelled(job: ImageListPullJob, wanted: str) -> Patch:
    body = {"metadata": {"labels": {REVISION_LABEL: wanted}}}
    return patch_of(IMAGE_LIST_PULL_JOB, job.metadata, Intent.UPDATE, "template hash", body=body)


def status_of(job: ImageListPullJob, children: Sequence[ImagePullJob], now: datetime) -> ImageListPullJobStatus:
    """Return the status; `children` are the jobs for the list's images. One without a start time does not count."""
    now = now.replace(microsecond=0)
    begun = [child for child in children if child.status.start_time is not None]
    completed = [one for one in begun if one.status.desired == one.status.succeeded + one.status.failed]
    desired = len(job.spec.images)
    start = job.status.start_time or now
    return ImageListPullJobStatus(
        start_time=start,
        completion_time=max(now, start) if job.spec.completion_policy.ends and desired == len(completed) else None,
        desired=desired,
        active=sum(1 for child in begun if child.status.active > 0),
        completed=len(completed),
        succeeded=sum(1 for child in begun if child.status.desired == child.status.succeeded),
        failed_image_statuses=_failures(begun),
    )


def _failures(children: Sequence[ImagePullJob]) -> list[FailedImageStatus]:
    """Return the failures, sorted by image so that the status is stable."""
    failed = sorted((child for child in children if child.status.failed > 0), key=lambda child: child.spec.image)
    return [
        FailedImageStatus(
            image_pull_job=child.metadata.name,
            name=child.spec.image,
            message=f"Please check for failed nodes: kubectl get ImagePullJob {child.metadata.name} -o yaml",
        )
        for child in failed
    ]
