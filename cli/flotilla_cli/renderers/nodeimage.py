"""NodeImage: a card with the pulls of the node."""

from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.images import reference_of
from flotilla_common.api.kinds.nodeimage.types import NodeImage


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


picture: Opener = partial(LiveCard, node_image)
