"""ImageListPullJob: a card with its images."""

from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob


def list_job(raw: bytes) -> Rendering:
    """The images, and which of them failed somewhere."""
    job = msgspec.json.decode(raw, type=ImageListPullJob)
    status = job.status
    headline = f"{status.completed} of {len(job.spec.images)} images are done, {status.succeeded} are on every node"
    failures = {failure.name: failure for failure in status.failed_image_statuses}
    rows: list[tuple[str, ...]] = []
    for image in job.spec.images:
        failure = failures.get(image)
        rows.append((image, "failed somewhere" if failure else "", failure.image_pull_job if failure else ""))
    return Rendering(headline, ("IMAGE", "TROUBLE", "JOB"), rows)


picture: Opener = partial(LiveCard, list_job)
