"""Applies an installation's objects server-side, one by one, with a result for each."""

from collections.abc import AsyncIterator, Sequence

import click
import msgspec

from flotilla_common.api.documents import Json, member
from flotilla_common.api.resources import CRD
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.installation import endpoint
from flotilla_insight.installation.objects import (
    OPTIONAL,
    ReportWait,
    get,
    gone,
    is_leaving,
    is_true,
    name_of,
    namespace_of,
    place_of,
    resource_of,
    title,
)

FIELD_MANAGER = "flotilla"
ESTABLISHED_SECONDS = 15.0
"""Limit for the apiserver to serve new CRDs, in seconds; usually less than one."""

_APPLY = "application/apply-patch+yaml"
_SERVER_KEEPS = ("managedFields", "resourceVersion", "generation")


class InstallError(click.ClickException):
    """An object could not be applied or removed; the message names it."""


async def apply(
    api: Api,
    clock: Clock,
    wanted: Sequence[Json],
    report: ReportWait,
    *,
    dry_run: bool = False,
    set_endpoints: bool = False,
) -> AsyncIterator[tuple[Json, str]]:
    """Apply the objects in order; yields each with `created`, `configured`, `unchanged` or `left out: …`.

    An object that is still being removed is awaited, and created again; `report` gets a line if that takes longer. With
    `set_endpoints` existing objects get the wanted webhook endpoints, else they keep theirs. Raises InstallError,
    Unreachable.
    """
    made: set[str] = set()  # namespaces that a dry run would have created
    for document in wanted:
        if dry_run and namespace_of(document) in made:
            yield document, "created"
            continue
        try:
            live = await get(api, place_of(document))
            if live is not None and is_leaving(live) and not dry_run:
                if why := await gone(api, clock, document, report):
                    raise InstallError(f"{title(document)} is still being removed: {why}")
                live = None
            result = await _apply_one(api, document, live, dry_run=dry_run, set_endpoints=set_endpoints)
        except ApiError as error:
            if error.code != 404 or resource_of(document) not in OPTIONAL:
                raise InstallError(f"{title(document)}: {error.message}") from error
            result = f"left out: this apiserver does not serve {document['kind']} {document['apiVersion']}"
        if result == "created" and document["kind"] == "Namespace":
            made.add(name_of(document))
        yield document, result


async def established(api: Api, definition: Json, clock: Clock) -> bool:
    """Wait until the apiserver serves the kind of a CRD. Return False on timeout."""
    deadline = clock.monotonic() + ESTABLISHED_SECONDS
    while clock.monotonic() < deadline:
        live = msgspec.json.decode(await api.get(CRD, "", name_of(definition)))
        if is_true(live, "Established"):
            return True
        await clock.sleep(0.1)
    return False


async def _apply_one(api: Api, document: Json, live: Json | None, *, dry_run: bool, set_endpoints: bool) -> str:
    resource, namespace, name = resource_of(document), namespace_of(document), name_of(document)
    if live is not None:
        if not set_endpoints:
            document = endpoint.keep(document, live)
        elif (other := endpoint.switched(document, live)) is not None:
            if dry_run:
                return "configured"
            await api.replace(resource, namespace, name, msgspec.json.encode(other))
    params = {"fieldManager": FIELD_MANAGER, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
    reply = await api.patch(resource, namespace, name, msgspec.json.encode(document), _APPLY, params=params)
    if live is None:
        return "created"
    return "unchanged" if _substance(live) == _substance(msgspec.json.decode(reply)) else "configured"


def _substance(document: Json) -> Json:
    """Return the object without the fields that every write may change."""
    metadata = {key: value for key, value in member(document, "metadata").items() if key not in _SERVER_KEEPS}
    return document | {"metadata": metadata}
