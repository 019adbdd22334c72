"""Computes the status of a NodeImage from the states of its tags."""

from collections import Counter
from collections.abc import Iterator, Mapping

from flotilla_common.api.kinds.nodeimage.types import (
    FAILED,
    PULLING,
    SUCCEEDED,
    WAITING,
    ImageSpec,
    ImageStatus,
    ImageTag,
    NodeImageStatus,
    TagStatus,
)

Name = tuple[str, str]
"""Image and tag."""


def tasks(images: Mapping[str, ImageSpec]) -> Iterator[tuple[str, ImageTag]]:
    """Yield all tags of a spec, each with its image."""
    for name, spec in images.items():
        for tag in spec.tags:
            yield name, tag


def counted(images: Mapping[str, ImageSpec], known: Mapping[Name, TagStatus]) -> NodeImageStatus:
    """Return the entries of tags in the spec, sorted, and the counts of those with the spec's version by phase."""
    wanted = {(name, tag.tag): tag.version for name, tag in tasks(images)}
    kept: dict[str, ImageStatus] = {}
    numbers = Counter[str]()
    for name, tag in sorted(known.keys() & wanted.keys()):
        entry = known[name, tag]
        kept.setdefault(name, ImageStatus(tags=[])).tags.append(entry)
        numbers[entry.phase] += entry.version == wanted[name, tag]
    return NodeImageStatus(
        desired=len(wanted),
        succeeded=numbers[SUCCEEDED],
        failed=numbers[FAILED],
        pulling=numbers[PULLING],
        waiting=numbers[WAITING],
        image_statuses=kept,
    )
