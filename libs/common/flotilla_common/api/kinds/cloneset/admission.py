"""Admission of CloneSets: defaults, validation, deletion protection (cloneset.md §3)."""

from flotilla_common.api.admission.fields import Fault, aggregate, invalid
from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.plain import document_of, former_of
from flotilla_common.api.admission.review import Answer, Request, error, identity, patched
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.admission.workload import template_verdict, unknown_fields
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.cloneset import validation as rules
from flotilla_common.api.kinds.cloneset.defaults import default_cloneset
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.api.resources import POD


async def mutate(request: Request, tools: Tools) -> Answer:
    """Defaults, as a patch in the version of the request."""
    document = document_of(request, rules.check_types)
    return patched(operations(document, default_cloneset(document, former_of(request, rules.check_types), tools.gates)))


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
        pods = await _pod_faults(tools, namespace, document, old)
    except (ApiError, Unreachable) as failure:
        return error(500, f"cannot check the CloneSet, the apiserver says: {failure}")
    if faults := rules.validate(document, old, template.faults, pods):
        return error(422, aggregate(faults))
    warnings = unknown_fields(template)
    if old is None and (warning := rules.name_warning(name, short_hash=tools.gates.on("CloneSetShortHash"))):
        warnings.append(warning)
    return Answer(warnings=warnings)


async def _pod_faults(tools: Tools, namespace: str, document: Json, old: Json | None) -> list[Fault]:
    uid = text(member(document, "metadata").get("uid"))
    names = rules.newly_to_delete(document, old)
    if not names:
        return []
    found = await tools.metadata_of(POD, namespace, names)
    reasons = {name: _unfit(name, found.get(name), uid) for name in names}
    return [invalid(rules.PODS_TO_DELETE, name, reason) for name, reason in reasons.items() if reason]


def _unfit(name: str, pod: ObjectMeta | None, uid: str) -> str:
    """Why the pod cannot be deleted by the CloneSet with this uid; empty if it can."""
    if pod is None:
        return f'find pod {name} failed: pods "{name}" not found'
    if pod.deletion_timestamp is not None:
        return f"find pod {name} already terminating"
    owner = controller_of(pod)
    return "" if owner is not None and owner.uid == uid else f"find pod {name} owner is not this CloneSet"
