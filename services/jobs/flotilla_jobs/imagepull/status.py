"""Computes the progress of a job from the NodeImages of its nodes (imagepull.md §8.1)."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob, ImagePullJobStatus
from flotilla_common.api.kinds.nodeimage.types import FAILED, SUCCEEDED, NodeImage, SecretReference
from flotilla_common.api.meta import later


class Progress(msgspec.Struct, frozen=True):
    """The job's nodes by state. A node that lacks a secret is also in `open`, beside its own state."""

    open: list[NodeImage] = []  # to be written to
    pulling: list[str] = []
    unanswered: dict[str, datetime] = {}  # nodes that pull without an answer yet: since when
    succeeded: list[str] = []
    failed: dict[str, str] = {}  # with the messages

    @classmethod
    def of(
        cls, nodes: Sequence[NodeImage], uid: str, image: ImageName, secrets: Sequence[SecretReference]
    ) -> "Progress":
        """Return the progress of these nodes with the image of the job with this uid."""
        progress = cls([], [], {}, [], {})
        for node in nodes:
            progress._take(node, uid, image, secrets)
        return progress

    def _take(self, node: NodeImage, uid: str, image: ImageName, secrets: Sequence[SecretReference]) -> None:
        name = node.metadata.name
        task = node.task(image.name, image.tag)
        if task is None or not task.owned_by(uid):
            self.open.append(node)
            return
        entry = node.entry(image.name, image.tag)
        if entry is None or entry.version != task.version:
            self.pulling.append(name)
            if task.created_at is not None:
                self.unanswered[name] = task.created_at
        elif entry.phase == SUCCEEDED:
            self.succeeded.append(name)
        elif entry.phase == FAILED:
            self.failed[name] = entry.message
        else:
            self.pulling.append(name)
        present = node.spec.images[image.name].pull_secrets
        if not all(any(secret.same(other) for other in present) for secret in secrets):
            self.open.append(node)


def deadline_of(job: ImagePullJob) -> datetime | None:
    """Return when the job times out, or None without a deadline or before it has started."""
    seconds = job.spec.completion_policy.active_deadline_seconds
    start = job.status.start_time
    return (
        later(start, seconds) if job.spec.completion_policy.ends and seconds is not None and start is not None else None
    )


def status_of(job: ImagePullJob, desired: int, progress: Progress, now: datetime) -> ImagePullJobStatus:
    """Return the status. Once it has a completion time, it is final."""
    now = now.replace(microsecond=0)
    done = len(progress.succeeded) + len(progress.failed)
    deadline = deadline_of(job)
    start = job.status.start_time or now
    end = max(now, start)  # even if the clock went back meanwhile
    if deadline is not None and done < desired and now >= deadline:
        failed = {*progress.failed, *progress.pulling, *(node.metadata.name for node in progress.open)}
        failed -= set(progress.succeeded)
        return ImagePullJobStatus(
            start_time=start,
            completion_time=end,
            desired=desired,
            succeeded=len(progress.succeeded),
            failed=len(failed),
            failed_nodes=sorted(failed),
            message="job exceeds activeDeadlineSeconds",
        )
    complete = job.spec.completion_policy.ends and done == desired
    progressed = f"progress {100 * done / desired:.1f}%" if desired else "no progress"
    return ImagePullJobStatus(
        start_time=start,
        completion_time=end if complete else None,
        desired=desired,
        active=len(progress.pulling),
        succeeded=len(progress.succeeded),
        failed=len(progress.failed),
        failed_nodes=sorted(progress.failed),
        message="job has completed" if complete else f"job is running, {progressed}",
    )
