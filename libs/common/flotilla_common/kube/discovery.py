"""Discovery of kinds that are not known in advance."""

import msgspec

from flotilla_common.api.documents import Json, mappings, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import Resource
from flotilla_common.kube.interface import Api


class Served(msgspec.Struct, frozen=True):
    """A namespaced kind as the apiserver serves it."""

    resource: Resource
    scaled: bool
    """True if it has the subresource `scale`."""


async def served(api: Api, group: str, version: str, kind: str) -> Served:
    """Return the kind as it is served. Raises ValueError if it is not, ApiError, Unreachable."""
    path = Resource(group, version, "", kind).path().rstrip("/")
    body = await found_or_none(api.raw("GET", path))
    document: Json = {} if body is None else msgspec.json.decode(body, type=Json)
    entries = mappings(document.get("resources"))
    names = {text(entry.get("name")) for entry in entries}
    for entry in entries:
        plural = text(entry.get("name"))
        if entry.get("kind") == kind and entry.get("namespaced") and "/" not in plural:
            return Served(Resource(group, version, plural, kind), f"{plural}/scale" in names)
    raise ValueError(f"{group}/{version} serves no namespaced kind {kind}")
