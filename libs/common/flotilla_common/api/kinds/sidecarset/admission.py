"""Admission of SidecarSets (sidecarset.md §3, §4)."""

import msgspec

from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.plain import document_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, patched
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json, mapping
from flotilla_common.api.kinds.sidecarset.canonical import INJECTED, canonical_list
from flotilla_common.api.kinds.sidecarset.conversion import to_hub
from flotilla_common.api.kinds.sidecarset.defaults import default_sidecarset
from flotilla_common.api.kinds.sidecarset.types import SidecarSet


async def mutate(request: Request, tools: Tools) -> Answer:
    """Defaults and hashes, as a patch in the version of the request."""
    document = document_of(request, check_types)
    return patched(operations(document, default_sidecarset(document)))


async def validate(request: Request, tools: Tools) -> Answer:
    """What cannot be read is refused (400)."""
    document_of(request, check_types)
    return ALLOWED


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads, or any field that pods get, has a type that it cannot have."""
    msgspec.json.decode(msgspec.json.encode(to_hub(document)), type=SidecarSet)
    for name in INJECTED:
        canonical_list(mapping(document.get("spec")), name)
