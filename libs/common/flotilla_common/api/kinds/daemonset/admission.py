"""Admission of DaemonSets: defaults and validation (daemonset.md §3). Nothing protects them from deletion."""

from flotilla_common.api.admission.fields import aggregate
from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.plain import document_of, former_of
from flotilla_common.api.admission.review import Answer, Request, error, identity, patched
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.admission.workload import template_verdict, unknown_fields
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.daemonset import validation as rules
from flotilla_common.api.kinds.daemonset.defaults import default_daemonset


async def mutate(request: Request, tools: Tools) -> Answer:
    """Defaults, as a patch in the version of the request."""
    document = document_of(request, rules.check_types)
    return patched(operations(document, default_daemonset(document)))


async def validate(request: Request, tools: Tools) -> Answer:
    """All field errors at once: 500 for a new object, 422 for a change. Warnings say what is accepted and will not work
    as it was meant."""
    document = document_of(request, rules.check_types)
    old = former_of(request, rules.check_types)
    namespace, name = identity(document, request)
    try:
        template = await template_verdict(tools, namespace, document, old)
    except (ApiError, Unreachable) as failure:
        return error(500, f"cannot check the DaemonSet, the apiserver says: {failure}")
    if faults := rules.validate(document, old, template.faults):
        return error(500 if old is None else 422, aggregate(faults))
    warning = rules.name_warning(name) if old is None else ""
    return Answer(warnings=[*unknown_fields(template), *([warning] if warning else [])])
