"""Admission of NodeImages (imagepull.md §3)."""

import copy
from collections.abc import Sequence
from datetime import datetime

from flotilla_common.api.admission.plain import decoded, defaulted, document_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json, ensured, mapping, mappings, member, text
from flotilla_common.api.kinds.imagepulljob.admission import default_limits
from flotilla_common.api.kinds.nodeimage import crd
from flotilla_common.api.kinds.nodeimage.conversion import convert, to_hub
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.meta import rfc3339

MOST_IMAGES = 256


def _read(document: Json) -> NodeImage:
    return decoded(to_hub(document), NodeImage)


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with default limits, creation times and sorted tags."""
    return defaulted(request, _read, lambda it: default_node_image(it.document, tools.now()))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with the first fault (400)."""
    problem = node_image_problem(document_of(request, _read))
    return error(400, problem) if problem else ALLOWED


def default_node_image(document: Json, now: datetime) -> Json:
    """Return a new document with limits and creation times of its tags, and sorted tags."""
    defaulted = copy.deepcopy(document)
    images = mapping(mapping(defaulted.get("spec")).get("images"))
    for image in map(mapping, images.values()):
        for tag in mappings(image.get("tags")):
            if tag.get("createdAt") is None:
                tag["createdAt"] = rfc3339(now)
            default_limits(ensured(tag, "pullPolicy"))
        _sort_tags(image)
    statuses = mapping(mapping(defaulted.get("status")).get("imageStatuses"))
    for status in map(mapping, statuses.values()):
        _sort_tags(status)
    return defaulted


def _sort_tags(holder: Json) -> None:
    if isinstance(holder.get("tags"), list):
        holder["tags"] = sorted(holder["tags"], key=lambda tag: text(mapping(tag).get("tag")))


def node_image_problem(document: Json) -> str:
    """Return the first fault of the raw document; empty without one."""
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


RULES = Rules(schema=crd.version, convert=convert, admission=Admission(mutate=mutate, validate=validate))
