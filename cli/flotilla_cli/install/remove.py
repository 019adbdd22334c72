"""Removes an installation in an order in which nothing gets stuck.

The webhook configurations go first, so that the apiserver calls no webhook that may be gone. Then conversion is
switched off, without which objects of converted kinds could not be listed or deleted (install.md §8). Then the CRDs
with their remaining objects, then the rest in reverse order. Namespaces take seconds to empty; they are awaited at the
end, so that an installation may follow at once.
"""

from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager

import msgspec

from flotilla_cli.install.apply import InstallError
from flotilla_common.api.documents import Json, member
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import CRD, SECRET, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import PatchType
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError, pages
from flotilla_insight.installation.manifests import definitions, manifests
from flotilla_insight.installation.objects import (
    ReportWait,
    get,
    gone,
    name_of,
    namespace_of,
    place_of,
    resource_of,
    title,
)
from flotilla_insight.installation.rbac import SECRETS_NAMESPACE
from flotilla_insight.views import all_views

DELETED = "deleted"
STILL_THERE = "still there"
"""Prefix of the result of an object whose removal did not finish."""

_NO_CONVERSION = msgspec.json.encode({"spec": {"conversion": {"strategy": "None", "webhook": None}}})


async def custom_resources(api: Api) -> list[str]:
    """Return users' objects of our kinds, as `clonesets.apps.kruise.io default/sample`. Raises ApiError."""
    found: list[str] = []
    for definition in definitions():
        kind = _kind(definition)
        if not kind.made_by_us and await get(api, place_of(definition)) is not None:
            found += [f"{kind.definition_name} {name}" for name in await _names(api, kind.resource)]
    return found


async def prepare_removal(api: Api) -> list[str]:
    """Prepare a removal that leaves the CRDs: all versions of objects become readable without the webhook.

    Returns the workloads that prevent it, as `clonesets.apps.kruise.io default/sample`; nothing is changed then. Raises
    InstallError, Unreachable.
    """
    left: list[str] = []
    for kind in (one for one in all_views() if one.guards_removal):
        names = await found_or_none(_names(api, kind.resource)) or ()  # a kind that is not installed has no objects
        left += [f"{kind.resource.plural}.{kind.resource.group} {name}" for name in names]
    for definition in definitions() if not left else ():
        live = await get(api, place_of(definition))
        if live is not None and member(live, "spec", "conversion").get("strategy") == "Webhook":
            with _naming(definition):
                await api.patch(CRD, "", name_of(definition), _NO_CONVERSION, PatchType.MERGE)
    return left


async def remove(
    api: Api, clock: Clock, report: ReportWait, *, dry_run: bool = False
) -> AsyncIterator[tuple[Json, str]]:
    """Remove everything; yields each object with `deleted`, `kept: …` or `still there: …`; absent ones are left out.

    `report` gets a line for longer waits. Raises InstallError, Unreachable.
    """
    emptying: list[Json] = []
    for document in removal_order():
        with _naming(document):
            result = await _remove_one(api, document, dry_run=dry_run)
            if result == DELETED and document["kind"] == "CustomResourceDefinition" and not dry_run:
                result = await _until_gone(api, clock, document, report)
        if result == DELETED and document["kind"] == "Namespace" and not dry_run:
            emptying.append(document)
        elif result:
            yield document, result
    for document in emptying:
        with _naming(document):
            result = await _until_gone(api, clock, document, report)
        yield document, result


async def withdraw(api: Api, unwanted: Sequence[Json], *, dry_run: bool = False) -> AsyncIterator[tuple[Json, str]]:
    """Remove single objects of an earlier installation; yields those that existed.

    Raises InstallError, Unreachable.
    """
    for document in unwanted:
        with _naming(document):
            if result := await _remove_one(api, document, dry_run=dry_run):
                yield document, result


async def _until_gone(api: Api, clock: Clock, document: Json, report: ReportWait) -> str:
    why = await gone(api, clock, document, report)
    return f"{STILL_THERE}: {why}" if why else DELETED


@contextmanager
def _naming(document: Json) -> Generator[None]:
    """Raise the apiserver's errors with the object that they are about."""
    try:
        yield
    except ApiError as error:
        raise InstallError(f"{title(document)}: {error.message}") from error


def removal_order() -> list[Json]:
    """Return the objects of an installation in the order of their removal."""
    documents = list(reversed(manifests(Gates.parse(""))))
    rank = {"MutatingWebhookConfiguration": 0, "ValidatingWebhookConfiguration": 0, "CustomResourceDefinition": 1}
    return sorted(documents, key=lambda document: rank.get(document["kind"], 2))


async def _remove_one(api: Api, document: Json, *, dry_run: bool) -> str:
    if await get(api, place_of(document)) is None:
        return ""
    if name_of(document) == SECRETS_NAMESPACE and (await api.list(SECRET, SECRETS_NAMESPACE, limit=1)).items:
        return "kept: it holds secrets"
    if dry_run:
        return DELETED
    resource = resource_of(document)
    if resource == CRD and await _has_objects(api, document):
        await api.patch(CRD, "", name_of(document), _NO_CONVERSION, PatchType.MERGE)
    await found_or_none(api.delete(resource, namespace_of(document), name_of(document)))
    return DELETED


async def _has_objects(api: Api, definition: Json) -> bool:
    """Report whether the deletion of remaining objects may need conversion.

    Without objects, a change of the CRD just before its removal would only make the apiserver rebuild its storage, and
    delay the removal.
    """
    try:
        return bool((await api.list(_kind(definition).resource, limit=1)).items)
    except ApiError:
        return True


async def _names(api: Api, resource: Resource) -> list[str]:
    metas = [metadata_of(raw) async for page in pages(api, resource) for raw in page.items]
    return [f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name for meta in metas]


def _kind(definition: Json) -> Kind:
    return catalogue.called(name_of(definition))
