"""What a user may not say in both kinds of pull jobs (imagepull.md §3.2): the first fault, as plain text.

An empty text means that there is none. The order of the rules is that in which users of the reference meet them.
"""

from collections.abc import Iterable

from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagepulljob.types import (
    ALWAYS,
    DEFAULT_TIMEOUT_SECONDS,
    NEVER,
    NodeSelector,
    PullTemplate,
)
from flotilla_common.api.meta import IntOrString, LabelSelector
from flotilla_common.api.numbers import whole_number
from flotilla_common.api.selectors import Selector


def template_problem(spec: PullTemplate, images: str, *, deadline: bool = True) -> str:
    """What is wrong with the spec. `images`: with its images. `deadline`: whether the deadline is judged, too."""
    return (
        selection_problem(spec)
        or images
        or _parallelism_problem(spec.parallelism)
        or (_deadline_problem(spec) if deadline else "")
        or _completion_problem(spec)
    )


def selection_problem(spec: PullTemplate) -> str:
    """What is wrong with its choice of nodes."""
    if spec.selector is not None and (problem := _selector_problem(spec.selector)):
        return problem
    if spec.pod_selector is not None:
        if spec.selector is not None:
            return "can not set both selector and podSelector"
        if problem := _labels_problem(spec.pod_selector):
            return f"invalid podSelector: {problem}"
    return ""


def image_problem(image: str) -> str:
    """What is wrong with the name of an image."""
    if not image:
        return "image can not be empty"
    try:
        ImageName.parse(image)
    except ValueError as fault:
        return f"invalid image {image}: {fault}"
    return ""


def duplicates(values: Iterable[str]) -> bool:
    """Some value is there twice."""
    listed = list(values)
    return len(set(listed)) != len(listed)


def _selector_problem(selector: NodeSelector) -> str:
    if selector.names and (selector.match_labels or selector.match_expressions):
        return "can not set both names and labelSelector in this spec.selector"
    if problem := _labels_problem(selector):
        return f"invalid selector: {problem}"
    return "duplicated name in selector names" if duplicates(selector.names) else ""


def _labels_problem(selector: LabelSelector) -> str:
    try:
        Selector.compile(selector)
    except ValueError as fault:
        return str(fault)
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
