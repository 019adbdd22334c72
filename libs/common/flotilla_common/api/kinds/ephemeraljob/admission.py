"""Admission of EphemeralJobs (ephemeraljob.md §3). Nothing is filled in."""

from flotilla_common.api.admission.fields import Fault, aggregate
from flotilla_common.api.admission.plain import document_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, identity
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.ephemeraljob import validation as rules


async def validate(request: Request, tools: Tools) -> Answer:
    """All field errors at once (400). Containers that are stored are not judged again: the finalizer of a job can
    always be taken off."""
    document = document_of(request, rules.check_types)
    if request.operation == "UPDATE" and not _changed(document, request.old_object or {}):
        return ALLOWED
    try:
        shared = await _shared_faults(document, request, tools)
    except (ApiError, Unreachable) as failure:
        return error(500, f"cannot check the EphemeralJob, the apiserver says: {failure}")
    faults = rules.validate(document, shared)
    return error(400, aggregate(faults)) if faults else ALLOWED


def _changed(document: Json, old: Json) -> bool:
    return rules.containers_of(document) != rules.containers_of(old)


async def _shared_faults(document: Json, request: Request, tools: Tools) -> list[Fault]:
    containers = rules.containers_of(document)
    if not containers:  # a job without any is admitted, and ends in an error
        return []
    verdict = await tools.template_verdict(identity(document, request)[0], rules.stand_in(containers), [])
    return rules.own_faults(verdict.faults)
