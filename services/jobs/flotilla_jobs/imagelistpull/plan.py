"""Plans one pass of an ImageListPullJob (imagepull.md §7): a job for every image, and the status from all of them.

All jobs are created from the same template, whose hash is in a label of each. A job with another hash may come from the
reference, or from an older version of Flotilla: it stays if its template is equivalent.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.kinds.imagelistpulljob.types import (
    IMAGE_LIST_PULL_JOB,
    FailedImageStatus,
    ImageListPullJob,
    ImageListPullJobStatus,
)
from flotilla_common.api.kinds.imagepulljob.types import (
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_TIMEOUT_SECONDS,
    IMAGE_PULL_JOB,
    ImagePullJob,
    NodeSelector,
    PullPolicy,
    PullTemplate,
)
from flotilla_common.control.plan import Action, Chain, Event, Intent, Patch, Plan, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import create_of, delete_finished, delete_of, patch_of, status_patch
from flotilla_common.workload.ownership import owner_reference
from flotilla_jobs.imagelistpull.snapshot import ListJobSnapshot
from flotilla_jobs.naming import free_name


class Children(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a list by the action that they need."""

    kept: Sequence[ImagePullJob]  # at most one per image of the list
    missing: Sequence[str]  # images without a job
    surplus: Sequence[ImagePullJob]

    @classmethod
    def of(cls, snapshot: ListJobSnapshot, wanted_hash: str) -> "Children":
        """Sort the jobs: the older of two for one image is kept."""
        images = list(dict.fromkeys(snapshot.job.spec.images))
        template = template_of(snapshot.job.spec)
        kept: dict[str, ImagePullJob] = {}
        surplus: list[ImagePullJob] = []
        for child in snapshot.children:
            image = child.spec.image
            fits = child.metadata.labels.get(REVISION_LABEL) == wanted_hash or template_of(child.spec) == template
            if fits and image in images and image not in kept:
                kept[image] = child
            else:
                surplus.append(child)
        return cls(kept=list(kept.values()), missing=[image for image in images if image not in kept], surplus=surplus)


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
    event = Event("Successful create ImagePullJob", f"Create {len(creates)} ImagePullJob")
    builder.stage(_with_event(creates, event), slow_start=1, stop_on_failure=False)


def _delete(children: Children, builder: PlanBuilder) -> None:
    cause = "no longer in the list, or made from another template"
    deletes = [
        delete_of(IMAGE_PULL_JOB, child.metadata, Intent.DELETE, cause, phase="delete") for child in children.surplus
    ]
    event = Event("Successful delete ImagePullJob", f"Delete {len(deletes)} ImagePullJob")
    builder.stage(_with_event(deletes, event), stop_on_failure=False)


def _with_event(actions: Sequence[Action], event: Event) -> list[Chain]:
    last = [msgspec.structs.replace(action, on_success=event) for action in actions[-1:]]
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
    completed = [child for child in begun if child.status.desired == child.status.succeeded + child.status.failed]
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


def child_body(snapshot: ListJobSnapshot, image: str, wanted_hash: str) -> Json:
    """Return the body of a new job for one image."""
    meta = snapshot.job.metadata
    return {
        **IMAGE_PULL_JOB.type_meta,
        "metadata": {
            "name": free_name(meta.name, f"{meta.uid}/{image}/{wanted_hash}/", snapshot.taken),
            "namespace": meta.namespace,
            "labels": {REVISION_LABEL: wanted_hash},
            "ownerReferences": [owner_reference(IMAGE_LIST_PULL_JOB, meta)],
        },
        "spec": {"image": image, **_spec(snapshot)},
    }


def _spec(snapshot: ListJobSnapshot) -> Json:
    """Return the template as the list has it. The completion policy is required, even without admission."""
    spec: Json = msgspec.to_builtins(snapshot.job.spec)
    completion = snapshot.job.spec.completion_policy
    del spec["images"]
    return spec | {"completionPolicy": {**msgspec.to_builtins(completion), "type": completion.type}}


def template_hash(spec: PullTemplate) -> str:
    """Return ten hexadecimal digits that identify the template, valid as a label value."""
    text = msgspec.json.encode(template_of(spec), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:10]


def template_of(spec: PullTemplate) -> PullTemplate:
    """Return the template of jobs with admission's defaults, so that equivalent templates are equal."""
    policy = spec.pull_policy or PullPolicy()
    selector = spec.selector
    return PullTemplate(
        pull_secrets=spec.pull_secrets,
        selector=None if selector is not None and selector == NodeSelector() else selector,
        pod_selector=spec.pod_selector,
        parallelism=spec.parallelism,
        pull_policy=PullPolicy(
            timeout_seconds=DEFAULT_TIMEOUT_SECONDS if policy.timeout_seconds is None else policy.timeout_seconds,
            backoff_limit=DEFAULT_BACKOFF_LIMIT if policy.backoff_limit is None else policy.backoff_limit,
        ),
        completion_policy=spec.completion_policy,
        sandbox_config=spec.sandbox_config,
        image_pull_policy=spec.image_pull_policy or "IfNotPresent",
    )
