"""Admission of StatefulSets: defaults, validation, deletion protection (statefulset.md §3)."""

from flotilla_common.api.admission.fields import Fault, aggregate
from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.plain import document_of, former_of
from flotilla_common.api.admission.review import Answer, Request, error, identity, patched
from flotilla_common.api.admission.tools import Tools, Verdict
from flotilla_common.api.admission.workload import name_warning, template_verdict, unknown_fields
from flotilla_common.api.documents import Json
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.statefulset import validation as rules
from flotilla_common.api.kinds.statefulset.claim_validation import claim_fault
from flotilla_common.api.kinds.statefulset.defaults import default_statefulset


async def mutate(request: Request, tools: Tools) -> Answer:
    """Defaults, as a patch in the version of the request."""
    document = document_of(request, rules.check_types)
    return patched(
        operations(document, default_statefulset(document, former_of(request, rules.check_types), tools.gates))
    )


async def validate(request: Request, tools: Tools) -> Answer:
    """All field errors at once (422), or what protects the object from deletion (403). Warnings say what is accepted
    and will not work as it was meant."""
    if request.operation == "DELETE":
        return await tools.deletion_protection(request)
    document = document_of(request, rules.check_types)
    old = former_of(request, rules.check_types)
    namespace, name = identity(document, request)
    try:
        template = await template_verdict(tools, namespace, document, old)
        claims = await _claim_faults(tools, document, old, template)
    except (ApiError, Unreachable) as failure:
        return error(500, f"cannot check the StatefulSet, the apiserver says: {failure}")
    if faults := rules.validate(document, old, template.faults, claims):
        return error(422, aggregate(faults))
    warning = name_warning(name) if old is None else ""
    return Answer(warnings=[*unknown_fields(template), *([warning] if warning else [])])


async def _claim_faults(tools: Tools, document: Json, old: Json | None, template: Verdict) -> list[Fault]:
    """Only claim templates that can be read are compared with the old ones."""
    if old is None or template.faults:
        return []
    fault = await claim_fault(document, old, tools)
    return [fault] if fault else []
