"""Admission of ImageListPullJobs (imagepull.md §3)."""

from flotilla_common.api.admission.plain import defaulted, judged
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.kinds.imagelistpulljob.defaults import default_list_job
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagelistpulljob.validation import list_job_problem


async def mutate(request: Request, tools: Tools) -> Answer:
    """Defaults."""
    return defaulted(request, ImageListPullJob, default_list_job)


async def validate(request: Request, tools: Tools) -> Answer:
    """The first fault (400)."""
    creating = request.operation == "CREATE"
    return judged(request, ImageListPullJob, lambda job: list_job_problem(job, creating=creating))
