"""Defaults of an ImagePullJob, and of what an ImageListPullJob shares with it (imagepull.md §3.1).

Both versions have the same fields. Parallelism is not written back when it is unset, and neither is what has no
default: a job's own meaning of "unset" stays visible.
"""

import copy

from flotilla_common.api.documents import Json, ensured, sequence
from flotilla_common.api.kinds.imagepulljob.types import (
    ALWAYS,
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_TIMEOUT_SECONDS,
    FINALIZER,
)
from flotilla_common.api.versions import V1ALPHA1


def default_pull_job(document: Json, *, creating: bool) -> Json:
    """The job, as a new document. Old clients expect the finalizer to be there at once; else the controller adds it."""
    defaulted = copy.deepcopy(document)
    spec = default_pull_template(defaulted)
    if not spec.get("imagePullPolicy"):
        spec["imagePullPolicy"] = "IfNotPresent"
    if creating and document.get("apiVersion") == V1ALPHA1:
        metadata = ensured(defaulted, "metadata")
        finalizers = sequence(metadata.get("finalizers"))
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
    return defaulted


def default_pull_template(document: Json) -> Json:
    """Fill in what both kinds of jobs share; changes the document and returns its spec."""
    spec = ensured(document, "spec")
    completion = ensured(spec, "completionPolicy")
    if not completion.get("type"):
        completion["type"] = ALWAYS
    default_limits(ensured(spec, "pullPolicy"))
    return spec


def default_limits(policy: Json) -> None:
    """Fill in the limits on one node; changes the policy."""
    if policy.get("timeoutSeconds") is None:
        policy["timeoutSeconds"] = DEFAULT_TIMEOUT_SECONDS
    if policy.get("backoffLimit") is None:
        policy["backoffLimit"] = DEFAULT_BACKOFF_LIMIT
