"""Admission of ResourceDistributions (resourcedistribution.md §4): they have no defaults.

Whether the apiserver takes the resource is asked of the apiserver itself, with a dry run in the system's own namespace;
nothing is stored. One that did not change is not tried again, as with pod templates (docs/adr/0002).
"""

from flotilla_common.api.admission.fields import Fault, aggregate
from flotilla_common.api.admission.plain import decoded, document_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json, mapping
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.resourcedistribution import validation as rules
from flotilla_common.api.kinds.resourcedistribution.conversion import to_hub
from flotilla_common.api.kinds.resourcedistribution.types import ResourceDistribution, distributed


async def validate(request: Request, tools: Tools) -> Answer:
    """All field errors at once (422)."""
    document = to_hub(document_of(request, _typed))
    resource = rules.resource_of(document)
    old = rules.resource_of(to_hub(request.old_object)) if request.old_object else None
    faults = list(rules.resource_faults(resource, old))
    if not faults and resource != old:
        faults += await _try(resource, tools)
    if resource:
        faults += rules.target_faults(_typed(document))
    return error(422, aggregate(faults)) if faults else ALLOWED


async def _try(resource: Json, tools: Tools) -> list[Fault]:
    """What the apiserver has against it."""
    kind, metadata = distributed(resource), mapping(resource.get("metadata"))
    assert kind is not None
    here = resource | {"metadata": metadata | {"namespace": tools.namespace}}
    try:
        await tools.try_create(kind, tools.namespace, here)
    except ApiError as refusal:
        fault = rules.trial_fault(resource, refusal)
        return [] if fault is None else [fault]
    except Unreachable as failure:
        return [rules.internal(str(failure))]
    return []


def _typed(document: Json) -> ResourceDistribution:
    return decoded(to_hub(document), ResourceDistribution)
