"""Defaults of NodeImages, ImagePullJobs and ImageListPullJobs (imagepull.md §3.1). Both versions have the same fields.

Each function returns a new document. Parallelism is not written back when it is unset, and neither is what has no
default: a job's own meaning of "unset" stays visible.
"""

import copy
from datetime import datetime

from flotilla_common.api.documents import Json, mapping, mappings, sequence, text
from flotilla_common.api.kinds.imagepulljob.types import (
    ALWAYS,
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_TIMEOUT_SECONDS,
    FINALIZER,
)
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.versions import V1ALPHA1


def default_pull_job(document: Json, *, creating: bool) -> Json:
    """An ImagePullJob. Old clients expect the finalizer to be there at once; else the controller adds it."""
    defaulted = copy.deepcopy(document)
    spec = default_pull_template(defaulted)
    if not spec.get("imagePullPolicy"):
        spec["imagePullPolicy"] = "IfNotPresent"
    if creating and document.get("apiVersion") == V1ALPHA1:
        metadata = _object(defaulted, "metadata")
        finalizers = sequence(metadata.get("finalizers"))
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
    return defaulted


def default_list_job(document: Json) -> Json:
    """An ImageListPullJob. Its jobs get their imagePullPolicy by their own admission."""
    defaulted = copy.deepcopy(document)
    default_pull_template(defaulted)
    return defaulted


def default_pull_template(document: Json) -> Json:
    """Fill in what both kinds of jobs share; changes the document and returns its spec."""
    spec = _object(document, "spec")
    completion = _object(spec, "completionPolicy")
    if not completion.get("type"):
        completion["type"] = ALWAYS
    _default_limits(_object(spec, "pullPolicy"))
    return spec


def default_node_image(document: Json, now: datetime) -> Json:
    """A NodeImage: limits and creation times of its tags, and tags in order."""
    defaulted = copy.deepcopy(document)
    images = mapping(mapping(defaulted.get("spec")).get("images"))
    for image in map(mapping, images.values()):
        for tag in mappings(image.get("tags")):
            if tag.get("createdAt") is None:
                tag["createdAt"] = rfc3339(now)
            _default_limits(_object(tag, "pullPolicy"))
        _sort_tags(image)
    statuses = mapping(mapping(defaulted.get("status")).get("imageStatuses"))
    for status in map(mapping, statuses.values()):
        _sort_tags(status)
    return defaulted


def _default_limits(policy: Json) -> None:
    if policy.get("timeoutSeconds") is None:
        policy["timeoutSeconds"] = DEFAULT_TIMEOUT_SECONDS
    if policy.get("backoffLimit") is None:
        policy["backoffLimit"] = DEFAULT_BACKOFF_LIMIT


def _sort_tags(holder: Json) -> None:
    if isinstance(holder.get("tags"), list):
        holder["tags"] = sorted(holder["tags"], key=lambda tag: text(mapping(tag).get("tag")))


def _object(document: Json, key: str) -> Json:
    """The member, made if it is not there."""
    if document.get(key) is None:
        document[key] = {}
    return mapping(document[key])
