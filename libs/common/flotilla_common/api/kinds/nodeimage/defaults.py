"""Defaults of a NodeImage (imagepull.md §3.1)."""

import copy
from datetime import datetime

from flotilla_common.api.documents import Json, ensured, mapping, mappings, text
from flotilla_common.api.kinds.imagepulljob.defaults import default_limits
from flotilla_common.api.meta import rfc3339


def default_node_image(document: Json, now: datetime) -> Json:
    """The NodeImage, as a new document: limits and creation times of its tags, and tags in order."""
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
