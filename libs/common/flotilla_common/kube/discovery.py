"""Discovery of kinds that are not known in advance, and waiting for CRDs.

A kind that is not installed is a state to wait in, not a crash (install.md §6).
"""

from collections.abc import Callable

import msgspec
import structlog

from flotilla_common.api.documents import Json, mappings, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable


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


LOOK_SECONDS = 2.0
"""Interval between checks for a missing CRD, whose kind is served soon after it was applied."""


async def until_installed(api: Api, clock: Clock, resource: Resource, waiting: Callable[[str], None]) -> None:
    """Return once the apiserver serves the kind; call `waiting` once for each reason to wait.

    If the apiserver refuses the request, the kind is assumed to exist.
    """
    log = structlog.get_logger(resource=resource.id)
    said = ""
    while why := await _missing(api, resource):
        if why != said:
            said = why
            waiting(why)
            log.warning("not installed", why=why)
        await clock.sleep(LOOK_SECONDS)
    if said:
        log.info("installed")


async def is_installed(api: Api, resource: Resource) -> bool:
    """Report whether the apiserver serves the kind now. If it does not respond, the kind is assumed to exist."""
    try:
        await api.list(resource, limit=1, resource_version="0")
    except (ApiError, Unreachable) as error:
        return not (isinstance(error, ApiError) and error.code == 404)
    return True


async def _missing(api: Api, resource: Resource) -> str:
    try:
        await api.list(resource, limit=1, resource_version="0")  # any version will do: no quorum read
    except ApiError as error:
        return f"waiting for CRD {resource.plural}.{resource.group}" if error.code == 404 else ""
    except Unreachable as error:
        return f"the apiserver is unreachable: {error}"
    return ""
