"""How far a list is, from its jobs (imagepull.md §8.2)."""

from collections.abc import Sequence
from datetime import datetime

from flotilla_common.api.kinds.imagelistpulljob.types import FailedImageStatus, ImageListPullJob, ImageListPullJobStatus
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob


def status_of(job: ImageListPullJob, children: Sequence[ImagePullJob], now: datetime) -> ImageListPullJobStatus:
    """The status. `children`: those of images of the list. One that was not looked at yet does not count."""
    now = now.replace(microsecond=0)
    begun = [child for child in children if child.status.start_time is not None]
    completed = [one for one in begun if one.status.desired == one.status.succeeded + one.status.failed]
    desired = len(job.spec.images)
    start = job.status.start_time or now
    return ImageListPullJobStatus(
        start_time=start,
        completion_time=max(now, start) if job.spec.ends and desired == len(completed) else None,
        desired=desired,
        active=sum(1 for child in begun if child.status.active > 0),
        completed=len(completed),
        succeeded=sum(1 for child in begun if child.status.desired == child.status.succeeded),
        failed_image_statuses=_failures(begun),
    )


def _failures(children: Sequence[ImagePullJob]) -> list[FailedImageStatus]:
    """By image, so that the status does not change by itself."""
    failed = sorted((child for child in children if child.status.failed > 0), key=lambda child: child.spec.image)
    return [
        FailedImageStatus(
            image_pull_job=child.metadata.name,
            name=child.spec.image,
            message=f"Please check for failed nodes: kubectl get ImagePullJob {child.metadata.name} -o yaml",
        )
        for child in failed
    ]
