"""Validation of a NodeImage (imagepull.md §3.2)."""

from collections.abc import Sequence

from flotilla_common.api.documents import Json, mapping, mappings, member, text

MOST_IMAGES = 256


def node_image_problem(document: Json) -> str:
    """The first fault, empty if there is none; the raw document shows what is set."""
    images = member(document, "spec", "images")
    if len(images) > MOST_IMAGES:
        return f"spec.images cannot have more than {MOST_IMAGES} images"
    for name, image in images.items():
        if not name:
            return "image name cannot be empty"
        if problem := _tags_problem(mappings(mapping(image).get("tags"))):
            return f"invalid image {name}: {problem}"
    return ""


def _tags_problem(tags: Sequence[Json]) -> str:
    seen: set[str] = set()
    for tag in tags:
        name = text(tag.get("tag"))
        policy = tag.get("pullPolicy")
        if not name:
            return "tag cannot be empty"
        if name in seen:
            return f"duplicated tag {name}"
        seen.add(name)
        problems = {
            "createdAt must be set": tag.get("createdAt") is None,
            "version must be non-negative": (tag.get("version") or 0) < 0,
            "pullPolicy must be set": policy is None,
            "pullPolicy.ttlSecondsAfterFinished must be set": mapping(policy).get("ttlSecondsAfterFinished") is None,
        }
        for problem, holds in problems.items():
            if holds:
                return f"tag {name}: {problem}"
    return ""
