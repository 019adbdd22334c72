"""Validation of an ImagePullJob (imagepull.md §3.2)."""

from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.imagepulljob.template_validation import image_problem, template_problem
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob


def pull_job_problem(job: ImagePullJob) -> str:
    """The first fault of the job; empty if there is none."""
    return template_problem(job.spec, image_problem(job.spec.image))


def secrets_changed(document: Json, old: Json) -> bool:
    """Whether an update changes what a job keeps for life."""
    return (member(document, "spec").get("pullSecrets") or []) != (member(old, "spec").get("pullSecrets") or [])
