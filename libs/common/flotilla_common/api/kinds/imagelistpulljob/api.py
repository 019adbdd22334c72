"""The API of ImageListPullJobs: schema, defaults, validation, admission (imagepull.md §2.3, §3).

Both versions are the same.
"""

import copy
from collections.abc import Sequence
from functools import partial

from flotilla_common.api.admission.handlers import Tools, decoded, defaulted, review_first
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.crds.schema import AGE, Column, Schema, Version, array, integer, string, strings, struct, time
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.api import (
    default_pull_template,
    duplicates,
    image_problem,
    template_problem,
    template_schemas,
)
from flotilla_common.api.kinds.rules import Admission, Rules

MOST_IMAGES = 255

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired"),
    Column("SUCCEEDED", "integer", ".status.succeeded"),
    Column("COMPLETED", "integer", ".status.completed"),
    AGE,
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, spec_schema(), _status_schema(), _COLUMNS)


def spec_schema() -> Schema:
    """Return the schema of the spec, which is also in an AdvancedCronJob's template."""
    images = strings("The images to pull; at most 255.")
    return struct("The desired state.", ("images", "completionPolicy"), images=images, **template_schemas())


def _status_schema() -> Schema:
    failure = struct(
        "One image that could not be pulled on every node.",
        imagePullJob=string("The job of the image."),
        name=string("The image."),
        message=string("A hint to the details."),
    )
    return struct(
        "The observed state.",
        ("desired",),
        startTime=time("The time of the first reconcile."),
        completionTime=time("The time at which it ended."),
        desired=integer("Images in the list."),
        active=integer("Images that are being pulled."),
        completed=integer("Images whose nodes have all succeeded or failed."),
        succeeded=integer("Images that every node has."),
        failedImageStatuses=array("Images that failed somewhere.", failure),
    )


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


_read = partial(decoded, model=ImageListPullJob)


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults."""
    return defaulted(request, _read, lambda it: default_list_job(it.document))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with the first fault (400)."""
    creating = request.operation == "CREATE"
    return review_first(request, ImageListPullJob, lambda job: list_job_problem(job, creating=creating))


RULES = Rules(
    schema=version,
    admission=Admission(mutate=mutate, validate=validate, name="imagelistpulljob-v1beta1"),
)
