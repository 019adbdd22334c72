"""ImagePullJob: a card with the number of nodes."""

from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob


def pull_job(raw: bytes) -> Rendering:
    """How many nodes have the image, and which could not pull it."""
    job = msgspec.json.decode(raw, type=ImagePullJob)
    status = job.status
    headline = f"{job.spec.image}: {status.message or 'not looked at yet'}"
    counts = (status.desired, status.active, status.succeeded, status.failed)
    rows = [(*map(str, counts), ", ".join(status.failed_nodes) or "-")]
    return Rendering(headline, ("TOTAL", "ACTIVE", "SUCCEED", "FAILED", "FAILED NODES"), rows)


picture: Opener = partial(LiveCard, pull_job)
