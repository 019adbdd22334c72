"""The webhooks of our kinds: a handler for every path of the catalogue, and the tools for their admission.

The tools read from the apiserver directly.
"""

from collections.abc import Collection, Mapping
from functools import partial

import msgspec

from flotilla_common.api.admission.review import Answer, Refused, Request, error
from flotilla_common.api.admission.tools import Handler as KindHandler
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.webhooks import paths
from flotilla_common.clock import Clock
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, pages
from flotilla_webhook.protection import Protection
from flotilla_webhook.templates import DryRunValidator, dry_run
from flotilla_webhook.wire import Handler

METADATA_PAGE = 10_000
"""Objects per page of metadata, which are smaller than objects."""


class _Named(Model):
    metadata: ObjectMeta = ObjectMeta()


class LiveTools:
    """The `Tools` of this process."""

    def __init__(self, api: Api, clock: Clock, gates: Gates, protection: Protection, namespace: str) -> None:
        self.gates = gates
        self.namespace = namespace
        self.now = clock.now
        self.read = api.get
        self.template_verdict = DryRunValidator(api).verdict
        self.deletion_protection = protection.workload
        self._api = api

    async def try_create(self, resource: Resource, namespace: str, document: Json) -> None:
        """Create the document in a dry run; see `dry_run`."""
        await dry_run(self._api, resource, namespace, document)

    async def read_all(self, resource: Resource, namespace: str = "") -> list[msgspec.Raw]:
        """Return all objects, page by page."""
        return await read_all(self._api, resource, namespace)

    async def metadata_of(self, resource: Resource, namespace: str, names: Collection[str]) -> Mapping[str, ObjectMeta]:
        """Return the metadata of the named objects; see `Tools`."""
        wanted, found = set(names), dict[str, ObjectMeta]()
        one = f"metadata.name={next(iter(wanted))}" if len(wanted) == 1 else ""
        async for page in pages(
            self._api, resource, namespace, field_selector=one, limit=METADATA_PAGE, metadata_only=True
        ):
            each = (msgspec.json.decode(item, type=_Named).metadata for item in page.items)
            found |= {metadata.name: metadata for metadata in each if metadata.name in wanted}
        return found


async def read_all(api: Api, resource: Resource, namespace: str = "") -> list[msgspec.Raw]:
    """Return all objects of a namespace, or of all. Raises ApiError, Unreachable."""
    return [item async for page in pages(api, resource, namespace) for item in page.items]


def kind_handlers(tools: Tools) -> dict[str, Handler]:
    """Return the handlers by path. The last webhook of a kind without its gates refuses everything."""
    found: dict[str, Handler] = {}
    for kind in catalogue.KINDS:
        handlers = kind.rules().admission.handlers
        for verb, handler in handlers.items():
            refusal = _refusal(kind, tools.gates) if verb == list(handlers)[-1] else None
            found |= dict.fromkeys(paths(kind, verb), partial(_answer, kind, handler, refusal, tools))
    return found


def _refusal(kind: Kind, gates: Gates) -> Answer | None:
    """Return the answer to all requests for a kind that is not served, or None if it is served."""
    closed = kind.closed(gates)
    if not closed:
        return None
    if kind.one_gate:
        return error(400, f"feature {kind.name} is invalid, please open via feature-gate({', '.join(closed)})")
    return error(403, f"feature-gate {closed[0]} is not enabled")


async def _answer(kind: Kind, handler: KindHandler, refusal: Answer | None, tools: Tools, request: Request) -> Answer:
    if refusal is not None:
        return refusal
    version = (request.object or {}).get("apiVersion")
    if request.object is not None and version not in kind.api_versions:
        return error(400, f"unsupported version {version}")
    try:
        return await handler(request, tools)
    except Refused as refused:
        return refused.answer
