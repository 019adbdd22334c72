"""ImageListPullJob: its images."""

import msgspec

from flotilla_cli.views.kindview import KindView, Summary
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob


def list_job(raw: bytes) -> Summary:
    """Describe the images, with those that failed on a node."""
    job = msgspec.json.decode(raw, type=ImageListPullJob)
    status = job.status
    headline = f"{status.completed} of {len(job.spec.images)} images are done, {status.succeeded} are on every node"
    failures = {failure.name: failure for failure in status.failed_image_statuses}
    rows: list[tuple[str, ...]] = []
    for image in job.spec.images:
        failure = failures.get(image)
        rows.append((image, "failed somewhere" if failure else "", failure.image_pull_job if failure else ""))
    return Summary(headline, ("IMAGE", "TROUBLE", "JOB"), rows)


def _progress(_: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    return f"{status.get('completed', 0)} of {status.get('desired', 0)} images done"


VIEW = KindView(
    resource=IMAGE_LIST_PULL_JOB,
    summary=list_job,
    has_unknown_name=lambda made: made.has_new_owner,  # names of its jobs contain a hash of its uid
    progress=_progress,
)
