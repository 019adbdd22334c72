"""NodeImage: the pulls of the node."""

from datetime import datetime

import msgspec

from flotilla_cli.views.kindview import KindView, Related, Summary
from flotilla_common.api.documents import Json
from flotilla_common.api.images import reference_of
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.meta import metadata_of
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Around


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


async def _related(_: Api, raw: bytes, now: datetime) -> Related:
    return Related(nodes=[metadata_of(raw).name], basis=Around(now=now))


def _progress(_: Json, status: Json) -> str:
    pulling = status.get("pulling", 0)
    return f"{pulling} of {status.get('desired', 0)} images being pulled" if pulling else ""


VIEW = KindView(resource=NODE_IMAGE, summary=node_image, related=_related, progress=_progress)
