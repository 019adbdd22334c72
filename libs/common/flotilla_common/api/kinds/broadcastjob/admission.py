"""Admission of BroadcastJobs: defaults and validation (broadcastjob.md §3)."""

from flotilla_common.api.admission.fields import aggregate
from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.plain import document_of, former_of
from flotilla_common.api.admission.review import Answer, Request, error, identity, patched
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.admission.workload import template_verdict, unknown_fields
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.broadcastjob import validation as rules
from flotilla_common.api.kinds.broadcastjob.defaults import default_broadcast_job


async def mutate(request: Request, tools: Tools) -> Answer:
    """Defaults, as a patch."""
    document = document_of(request, rules.check_types)
    return patched(
        operations(document, default_broadcast_job(document, former_of(request, rules.check_types), tools.gates))
    )


async def validate(request: Request, tools: Tools) -> Answer:
    """All field errors at once (500). Warnings say what pods will not have."""
    document = document_of(request, rules.check_types)
    old = former_of(request, rules.check_types)
    namespace, name = identity(document, request)
    try:
        template = await template_verdict(tools, namespace, document, old)
    except (ApiError, Unreachable) as failure:
        return error(500, f"cannot check the BroadcastJob, the apiserver says: {failure}")
    if faults := rules.validate(document, name, template.faults):
        return error(500, aggregate(faults))
    return Answer(warnings=unknown_fields(template))
