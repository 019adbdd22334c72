"""Admission of PersistentPodStates (persistentpodstate.md §3): they have no defaults."""

import msgspec

from flotilla_common.api.admission.configuration import configuration
from flotilla_common.api.admission.fields import Fault, aggregate
from flotilla_common.api.admission.plain import decoded, document_of, former_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, identity
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.persistentpodstate import validation as rules
from flotilla_common.api.kinds.persistentpodstate.conversion import to_hub
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE, PersistentPodState
from flotilla_common.api.kinds.persistentpodstate.whitelist import custom_workloads


async def validate(request: Request, tools: Tools) -> Answer:
    """All field errors at once (400)."""
    document = to_hub(document_of(request, _typed))
    try:
        faults = await _faults(request, document, tools)
    except (ApiError, Unreachable, ValueError) as failure:
        return error(400, f"Internal error: {failure}")
    return error(400, aggregate(faults)) if faults else ALLOWED


async def _faults(request: Request, document: Json, tools: Tools) -> list[Fault]:
    namespace, name = identity(document, request)
    state = _typed(document)
    faults = [*rules.spec_faults(document, state, custom_workloads(await configuration(tools)))]
    if (old := former_of(request, _typed)) is not None:
        faults += rules.change_faults(state, _typed(old))
    stored = await tools.read_all(PERSISTENT_POD_STATE, namespace)
    states = [msgspec.json.decode(body, type=PersistentPodState) for body in stored]
    others = [one for one in states if one.metadata.name != name]
    return [*faults, *rules.conflict_faults(document, state, others)]


def _typed(document: Json) -> PersistentPodState:
    return decoded(to_hub(document), PersistentPodState)
