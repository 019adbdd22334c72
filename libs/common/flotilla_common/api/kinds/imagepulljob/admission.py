"""Admission of ImagePullJobs (imagepull.md §3)."""

from flotilla_common.api.admission.plain import defaulted, judged
from flotilla_common.api.admission.review import Answer, Request, denied
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.kinds.imagepulljob.defaults import default_pull_job
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.imagepulljob.validation import pull_job_problem, secrets_changed


async def mutate(request: Request, tools: Tools) -> Answer:
    """Defaults; old clients also get the finalizer."""
    creating = request.operation == "CREATE"
    return defaulted(request, ImagePullJob, lambda it: default_pull_job(it, creating=creating))


async def validate(request: Request, tools: Tools) -> Answer:
    """The first fault (400), or a change of pull secrets (403)."""
    old = request.old_object
    if request.operation == "UPDATE" and old and secrets_changed(request.object or {}, old):
        return denied("spec.pullSecrets is immutable")
    return judged(request, ImagePullJob, pull_job_problem)
