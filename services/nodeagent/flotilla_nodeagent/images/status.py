"""NodeImage.status from what is known of each task: counts, and the entries behind them (nodeagent.md §3.6)."""

from collections.abc import Mapping

from flotilla_common.api.kinds.nodeimage.types import (
    FAILED,
    PULLING,
    SUCCEEDED,
    WAITING,
    ImageStatus,
    NodeImage,
    NodeImageStatus,
    TagStatus,
)

Name = tuple[str, str]  # image and tag


def status_of(image: NodeImage, known: Mapping[Name, TagStatus]) -> NodeImageStatus:
    """The whole status. Tags that left the spec are not in it."""
    wanted = [(name, tag.tag) for name, spec in image.spec.images.items() for tag in spec.tags]
    entries = {one: known[one] for one in wanted if one in known}
    phases = [entry.phase for entry in entries.values()]
    statuses: dict[str, ImageStatus] = {}
    for name in sorted({name for name, _ in entries}):
        tags = sorted((entry for (image_name, _), entry in entries.items() if image_name == name), key=_tag)
        statuses[name] = ImageStatus(tags=tags)
    return NodeImageStatus(
        desired=len(wanted),
        succeeded=phases.count(SUCCEEDED),
        failed=phases.count(FAILED),
        pulling=phases.count(PULLING),
        waiting=phases.count(WAITING),
        image_statuses=statuses,
    )


def _tag(entry: TagStatus) -> str:
    return entry.tag
