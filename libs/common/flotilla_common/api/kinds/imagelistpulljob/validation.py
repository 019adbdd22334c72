"""Validation of an ImageListPullJob (imagepull.md §3.2)."""

from collections.abc import Sequence

from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.template_validation import duplicates, image_problem, template_problem

MOST_IMAGES = 255


def list_job_problem(job: ImageListPullJob, *, creating: bool) -> str:
    """The first fault of the list; empty if there is none. A deadline that its jobs could not have is refused from the
    start, but does not make an older list unwritable."""
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
