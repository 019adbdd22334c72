"""Validation of the template of ImageListPullJobs (advancedcronjob.md §3.2): its first fault.

A list that is pulled again and again has to end, and to stay until the next one: it has no end of its own choice.
"""

from collections.abc import Iterator
from itertools import islice

from flotilla_common.api.admission.fields import Fault, invalid
from flotilla_common.api.admission.plain import decoded
from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.advancedcronjob.templates import IMAGES
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJobSpec
from flotilla_common.api.kinds.imagelistpulljob.validation import MOST_IMAGES
from flotilla_common.api.kinds.imagepulljob.template_validation import duplicates, image_problem, selection_problem
from flotilla_common.api.kinds.imagepulljob.types import ALWAYS

LONGEST_DEADLINE = 86400
"""Seconds: a day."""

_PATH = f"spec.template.{IMAGES}.spec"


def pull_faults(spec: Json) -> Iterator[Fault]:
    """The first fault of the template in the spec of an AdvancedCronJob, if it has one."""
    document = member(spec, "template", IMAGES, "spec")
    pulls = decoded(document, ImageListPullJobSpec)
    problems = {
        "selector": selection_problem(pulls),
        "images": _images_problem(pulls.images),
        "completionPolicy": _completion_problem(pulls),
    }
    faults = (invalid(f"{_PATH}.{name}", document.get(name), problem) for name, problem in problems.items() if problem)
    yield from islice(faults, 1)


def _images_problem(images: list[str]) -> str:
    if not images:
        return "image can not be empty"
    if len(images) > MOST_IMAGES:
        return f"the maximum number of images cannot > {MOST_IMAGES}"
    if duplicates(images):
        return "images cannot have duplicate values"
    return next((problem for image in images if (problem := image_problem(image))), "")


def _completion_problem(spec: ImageListPullJobSpec) -> str:
    policy, limits = spec.completion_policy, spec.pull_policy
    deadline = policy.active_deadline_seconds
    timeout = limits.timeout_seconds if limits is not None else None
    if policy.type != ALWAYS:
        return f"type must be {ALWAYS}"
    if deadline is not None and deadline > LONGEST_DEADLINE:
        return f"activeDeadlineSeconds must be less than or equal to {LONGEST_DEADLINE}"
    if deadline is not None and timeout is not None and deadline < timeout:
        return "activeDeadlineSeconds must be greater than or equal to pullPolicy.timeoutSeconds"
    return "" if policy.ttl_seconds_after_finished is None else "ttlSecondsAfterFinished is not supported"
