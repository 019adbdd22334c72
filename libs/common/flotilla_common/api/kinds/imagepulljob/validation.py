"""Validation of ImagePullJobs, ImageListPullJobs and NodeImages (imagepull.md §3.2): the first fault, as plain text.

An empty text means that there is none. The order of the rules is that in which users of the reference meet them.
"""

from collections.abc import Iterable, Sequence

import msgspec

from flotilla_common.api.documents import Json, is_object, mapping, mappings, member, text
from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import (
    ALWAYS,
    DEFAULT_TIMEOUT_SECONDS,
    NEVER,
    ImagePullJob,
    NodeSelector,
    PullTemplate,
)
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.meta import IntOrString, LabelSelector
from flotilla_common.api.numbers import whole_number
from flotilla_common.api.selectors import Selector

MOST_IMAGES_OF_A_LIST = 255
MOST_IMAGES_OF_A_NODE = 256


def decode_pull_job(document: Json) -> ImagePullJob:
    """ValueError for a field of a type that it cannot have."""
    return msgspec.convert(without_nulls(document), ImagePullJob)


def decode_list_job(document: Json) -> ImageListPullJob:
    """ValueError for a field of a type that it cannot have."""
    return msgspec.convert(without_nulls(document), ImageListPullJob)


def decode_node_image(document: Json) -> NodeImage:
    """ValueError for a field of a type that it cannot have."""
    return msgspec.convert(without_nulls(document), NodeImage)


def without_nulls(document: Json) -> Json:
    """A member that is null is one that is not there."""
    present = {key: value for key, value in document.items() if value is not None}
    return present | {key: without_nulls(value) for key, value in present.items() if is_object(value)}


def secrets_changed(document: Json, old: Json) -> bool:
    """An ImagePullJob keeps its pull secrets for life."""
    return (member(document, "spec").get("pullSecrets") or []) != (member(old, "spec").get("pullSecrets") or [])


def pull_job_problem(job: ImagePullJob) -> str:
    """What is wrong with an ImagePullJob."""
    spec = job.spec
    return (
        _selection_problem(spec)
        or _image_problem(spec.image)
        or _parallelism_problem(spec.parallelism)
        or _deadline_problem(spec)
        or _completion_problem(spec)
    )


def list_job_problem(job: ImageListPullJob, *, creating: bool) -> str:
    """What is wrong with an ImageListPullJob. A deadline that its jobs could not have is refused from the start, but
    does not make an older list unwritable."""
    spec = job.spec
    return (
        _selection_problem(spec)
        or _images_problem(spec.images)
        or _parallelism_problem(spec.parallelism)
        or (_deadline_problem(spec) if creating else "")
        or _completion_problem(spec)
    )


def node_image_problem(document: Json) -> str:
    """What is wrong with a NodeImage; the raw document shows what is set."""
    images = member(document, "spec", "images")
    if len(images) > MOST_IMAGES_OF_A_NODE:
        return f"spec.images cannot have more than {MOST_IMAGES_OF_A_NODE} images"
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


def _selection_problem(spec: PullTemplate) -> str:
    if spec.selector is not None and (problem := _selector_problem(spec.selector)):
        return problem
    if spec.pod_selector is not None:
        if spec.selector is not None:
            return "can not set both selector and podSelector"
        if problem := _labels_problem(spec.pod_selector):
            return f"invalid podSelector: {problem}"
    return ""


def _selector_problem(selector: NodeSelector) -> str:
    if selector.names and (selector.match_labels or selector.match_expressions):
        return "can not set both names and labelSelector in this spec.selector"
    if problem := _labels_problem(selector):
        return f"invalid selector: {problem}"
    return "duplicated name in selector names" if _duplicates(selector.names) else ""


def _labels_problem(selector: LabelSelector) -> str:
    try:
        Selector.compile(selector)
    except ValueError as fault:
        return str(fault)
    return ""


def _images_problem(images: Sequence[str]) -> str:
    if not images:
        return "image can not be empty"
    if _duplicates(images):
        return "images cannot have duplicate values"
    if len(images) > MOST_IMAGES_OF_A_LIST:
        return f"the maximum number of images cannot > {MOST_IMAGES_OF_A_LIST}"
    problems = [_image_problem(image) for image in images]
    return next((problem for problem in problems if problem), "")


def _image_problem(image: str) -> str:
    if not image:
        return "image can not be empty"
    try:
        ImageName.parse(image)
    except ValueError as fault:
        return f"invalid image {image}: {fault}"
    return ""


def _parallelism_problem(parallelism: IntOrString | None) -> str:
    if isinstance(parallelism, str) and parallelism.endswith("%"):
        return "parallelism does not support percentage value"
    try:
        number = 0 if parallelism is None else whole_number(parallelism)
    except ValueError as fault:
        return f"parallelism must be a valid integer: {fault}"
    return "parallelism must be non-negative" if number < 0 else ""


def _deadline_problem(spec: PullTemplate) -> str:
    deadline = spec.completion_policy.active_deadline_seconds
    limit = spec.pull_policy.timeout_seconds if spec.pull_policy is not None else None
    if spec.completion_policy.type != ALWAYS or deadline is None:
        return ""
    if (DEFAULT_TIMEOUT_SECONDS if limit is None else limit) > deadline:
        return "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)"
    return ""


def _completion_problem(spec: PullTemplate) -> str:
    policy = spec.completion_policy
    if policy.type not in (ALWAYS, NEVER):
        return f"unknown type of completionPolicy: {policy.type}"
    limited = policy.active_deadline_seconds is not None or policy.ttl_seconds_after_finished is not None
    if policy.type == NEVER and limited:
        return "activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType"
    return ""


def _duplicates(values: Iterable[str]) -> bool:
    listed = list(values)
    return len(set(listed)) != len(listed)
