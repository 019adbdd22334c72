"""Admission of ImageListPullJobs (imagepull.md §3)."""

import copy
from collections.abc import Sequence
from functools import partial

from flotilla_common.api.admission.plain import decoded, defaulted, judged_at_first
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.imagelistpulljob import crd
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.admission import (
    default_pull_template,
    duplicates,
    image_problem,
    template_problem,
)
from flotilla_common.api.kinds.rules import Admission, Rules

MOST_IMAGES = 255

_read = partial(decoded, model=ImageListPullJob)


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults."""
    return defaulted(request, _read, lambda it: default_list_job(it.document))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with the first fault (400)."""
    creating = request.operation == "CREATE"
    return judged_at_first(request, ImageListPullJob, lambda job: list_job_problem(job, creating=creating))


def default_list_job(document: Json) -> Json:
    """Return a new document with defaults. Its jobs get their imagePullPolicy by their own admission."""
    defaulted = copy.deepcopy(document)
    default_pull_template(defaulted)
    return defaulted


def list_job_problem(job: ImageListPullJob, *, creating: bool) -> str:
    """Return the first fault of the list; empty without one.

    A deadline that its jobs could not have is refused at creation only, so that older lists stay writable.
    """
    return template_problem(job.spec, _images_problem(job.spec.images), deadline=creating)


def _images_problem(images: Sequence[str]) -> str:
    if not images:
        return "image can not be empty"
    if duplicates(images):
        return "images cannot have duplicate values"
    if len(images) > MOST_IMAGES:
        return f"the maximum number of images cannot > {MOST_IMAGES}"
    problems = [image_problem(image) for image in images]
    return next((problem for problem in problems if problem), "")


RULES = Rules(
    schema=crd.version,
    admission=Admission(mutate=mutate, validate=validate, name="imagelistpulljob-v1beta1"),
)
