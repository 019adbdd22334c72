"""Which kinds are shown as cards, and what is on them."""

from collections.abc import Mapping

import msgspec

from flotilla_cli.card.card import Renderer, Rendering
from flotilla_common.api.images import reference_of
from flotilla_common.api.keys import RECREATE_NODE_NAME
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.resources import Resource


def recreate_request(raw: bytes) -> Rendering:
    """The containers, how far each is, and the ID that its new one has."""
    request = msgspec.json.decode(raw, type=ContainerRecreateRequest)
    status, node = request.status, request.metadata.labels.get(RECREATE_NODE_NAME, "?")
    headline = f"{status.phase or 'not taken up'}: pod {request.spec.pod_name} on {node}"
    if status.message:
        headline += f", {status.message}"
    states = {state.name: state for state in status.container_recreate_states}
    seen = {container.name: container for container in status.container_status_snapshot}
    rows: list[tuple[str, ...]] = []
    for container in request.spec.containers:
        state, new = states.get(container.name), seen.get(container.name)
        rows.append(
            (
                container.name,
                state.phase if state else "-",
                ("yes" if state.is_killed else "no") if state else "-",
                short_id(new.container_id) if new else "-",
                ("yes" if new.ready else "no") if new else "-",
                state.message if state else "",
            )
        )
    return Rendering(headline, ("CONTAINER", "STATE", "KILLED", "NEW ID", "READY", "MESSAGE"), rows)


def pull_job(raw: bytes) -> Rendering:
    """How many nodes have the image, and which could not pull it."""
    job = msgspec.json.decode(raw, type=ImagePullJob)
    status = job.status
    headline = f"{job.spec.image}: {status.message or 'not looked at yet'}"
    counts = (status.desired, status.active, status.succeeded, status.failed)
    rows = [(*map(str, counts), ", ".join(status.failed_nodes) or "-")]
    return Rendering(headline, ("TOTAL", "ACTIVE", "SUCCEED", "FAILED", "FAILED NODES"), rows)


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


def node_image(raw: bytes) -> Rendering:
    """What the node shall pull, and how far each pull is."""
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
    return Rendering(headline, ("IMAGE", "PHASE", "FOR", "MESSAGE"), rows)


def short_id(identity: str) -> str:
    """A container's ID without its runtime, as container tools shorten it."""
    return identity.rpartition("/")[2][:12]


def bare(_: bytes) -> Rendering:
    """Nothing but what every object has."""
    return Rendering("")


RENDERERS: Mapping[Resource, Renderer] = {
    RECREATE_REQUEST: recreate_request,
    IMAGE_PULL_JOB: pull_job,
    IMAGE_LIST_PULL_JOB: list_job,
    NODE_IMAGE: node_image,
}
