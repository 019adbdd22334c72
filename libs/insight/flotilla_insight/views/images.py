"""Images on nodes: ImagePullJob, ImageListPullJob and NodeImage."""

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.images import reference_of
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_insight.views.kindview import KindView, Summary
from flotilla_insight.views.related import node_itself


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


def _list_progress(_: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    return f"{status.get('completed', 0)} of {status.get('desired', 0)} images done"


def pull_job(raw: bytes) -> Summary:
    """Describe how many nodes have the image, and which ones failed to pull it."""
    job = msgspec.json.decode(raw, type=ImagePullJob)
    status = job.status
    headline = f"{job.spec.image}: {status.message or 'not reconciled yet'}"
    counts = (status.desired, status.active, status.succeeded, status.failed)
    rows = [(*map(str, counts), ", ".join(status.failed_nodes) or "-")]
    return Summary(headline, ("TOTAL", "ACTIVE", "SUCCEED", "FAILED", "FAILED NODES"), rows)


def _pull_progress(spec: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    desired, active = status.get("desired", 0), status.get("active", 0)
    return f"{spec.get('image')} on {status.get('succeeded', 0)} of {desired} nodes, {active} pulling"


def node_image(raw: bytes) -> Summary:
    """Describe the images of the node, and the progress of each pull."""
    image = msgspec.json.decode(raw, type=NodeImage)
    status = image.status
    headline = "the node's agent has not reported yet"
    if status.desired is not None:
        headline = f"{status.succeeded} of {status.desired} images are there, {status.pulling} on the way"
    rows: list[tuple[str, ...]] = []
    for name, spec in sorted(image.spec.images.items()):
        for tag in spec.tags:
            entry = image.entry(name, tag.tag)
            current = entry if entry is not None and entry.version == tag.version else None
            jobs = ", ".join(f"{owner.namespace}/{owner.name}" for owner in tag.owner_references) or "-"
            phase, message = (current.phase, current.message) if current else ("-", "")
            rows.append((reference_of(name, tag.tag), phase, jobs, message))
    return Summary(headline, ("IMAGE", "PHASE", "FOR", "MESSAGE"), rows)


def _node_progress(_: Json, status: Json) -> str:
    pulling = status.get("pulling", 0)
    return f"{pulling} of {status.get('desired', 0)} images being pulled" if pulling else ""


VIEWS = (
    KindView(
        resource=IMAGE_LIST_PULL_JOB,
        summary=list_job,
        has_unknown_name=lambda made: made.has_new_owner,  # names of its jobs contain a hash of its uid
        progress=_list_progress,
    ),
    KindView(resource=IMAGE_PULL_JOB, summary=pull_job, progress=_pull_progress),
    KindView(resource=NODE_IMAGE, summary=node_image, related=node_itself, progress=_node_progress),
)
