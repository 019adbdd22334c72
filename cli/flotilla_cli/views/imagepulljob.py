"""ImagePullJob: the numbers of nodes."""

import msgspec

from flotilla_cli.views.kindview import KindView, Summary
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob


def pull_job(raw: bytes) -> Summary:
    """Describe how many nodes have the image, and which ones failed to pull it."""
    job = msgspec.json.decode(raw, type=ImagePullJob)
    status = job.status
    headline = f"{job.spec.image}: {status.message or 'not reconciled yet'}"
    counts = (status.desired, status.active, status.succeeded, status.failed)
    rows = [(*map(str, counts), ", ".join(status.failed_nodes) or "-")]
    return Summary(headline, ("TOTAL", "ACTIVE", "SUCCEED", "FAILED", "FAILED NODES"), rows)


def _progress(spec: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    desired, active = status.get("desired", 0), status.get("active", 0)
    return f"{spec.get('image')} on {status.get('succeeded', 0)} of {desired} nodes, {active} pulling"


VIEW = KindView(resource=IMAGE_PULL_JOB, summary=pull_job, progress=_progress)
