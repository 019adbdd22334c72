"""Admission of our kinds: a handler for every path of the catalogue, and the tools that they use.

The tools read from the apiserver directly. Pod templates are validated by the apiserver itself (docs/adr/0002): a
template is sent as a core/v1 PodTemplate in a dry-run create, so the rules are exactly those of the cluster's version,
its feature gates included; nothing is stored. The causes of a refusal are returned as field errors of the workload.
Fields that are missing in the answer are unknown to the apiserver: a CRD cannot refuse them, as the schema of a pod is
open there, but the user gets a warning.
"""

import copy
from collections.abc import Collection, Iterator, Mapping
from functools import partial

import msgspec

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.handlers import Handler as KindHandler
from flotilla_common.api.admission.handlers import Tools, Verdict
from flotilla_common.api.admission.pod_template import fill_host_ports
from flotilla_common.api.admission.review import Answer, Refused, Request, error
from flotilla_common.api.documents import Json, JsonValue, mapping, mappings, member, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import POD_TEMPLATE, Resource
from flotilla_common.api.webhooks import paths
from flotilla_common.clock import Clock
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError, Unreachable, pages
from flotilla_common.settings import Settings
from flotilla_webhook.cache import read_all
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.protection import LiveCounts, Protection, protection_log
from flotilla_webhook.server.reviews import Handler

METADATA_PAGE = 10_000
"""Objects per page of metadata, which are smaller than objects."""

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_OURS = "template."

_OF_ANOTHER_WEBHOOK = 'admission webhook "'
"""Prefix of the apiserver's message when another webhook has refused, with any code."""

MAX_DROPPED = 10
"""Limit of unknown fields that are named. All warnings of a request share 4 KiB."""


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


def handlers_of(api: Api, clock: Clock, settings: Settings, gates: Gates, metrics: Metrics) -> dict[str, Handler]:
    """Return the handler of every admission path except those of pods."""
    protection = Protection(gates, LiveCounts(api), metrics, protection_log(settings.protection_log_path))
    kinds = kind_handlers(LiveTools(api, clock, gates, protection, settings.namespace))
    return kinds | protection.handlers()


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


class DryRunValidator:
    """Validates at the apiserver. ApiError and Unreachable are passed on: without an answer nothing can be admitted."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def verdict(self, namespace: str, template: Json, claims: list[Json]) -> Verdict:
        """Return faults and unknown fields of the template. Each claim template is a volume, too."""
        bare = _bare_template(template, claims)
        document = {
            **POD_TEMPLATE.type_meta,
            "metadata": {"generateName": "flotilla-dry-run-", "namespace": namespace},
            "template": bare,
        }
        try:
            answer = await dry_run(self.api, POD_TEMPLATE, namespace, document)
        except ApiError as refusal:
            if _is_unrelated(refusal):
                return Verdict()  # the problem also affects the write itself or the pods
            if refusal.code == 422:
                return Verdict(faults=_translate(refusal))
            if refusal.code == 400:  # a field has a type that pods do not have
                return Verdict(faults=[Fault("spec.template", f"Invalid value: {refusal.message}")])
            raise
        kept = member(msgspec.json.decode(answer), "template")
        return Verdict(dropped=sorted(_missing(bare, kept, "spec.template"))[:MAX_DROPPED])


IDLE_CONNECTIONS = 3
"""Kept connections that a request may find broken, one after the other."""


async def dry_run(api: Api, resource: Resource, namespace: str, document: Json) -> bytes:
    """Return the object that would be stored. Raises ApiError and Unreachable."""
    body = msgspec.json.encode(document)
    # Retried after a broken connection: idle ones may have been cut on the way, all at once, and nothing is stored.
    for _ in range(IDLE_CONNECTIONS):
        try:
            return await api.create(resource, namespace, body, dry_run=True)
        except Unreachable as error:
            if not error.sent:
                break
    return await api.create(resource, namespace, body, dry_run=True)


def _bare_template(template: Json, claims: list[Json]) -> Json:
    """Return the template without what a workload may have beyond a bare template."""
    bare = copy.deepcopy(template)
    mapping(member(bare, "metadata").get("annotations")).pop(_DELETION_COST, None)
    spec = mapping(bare.get("spec"))
    if spec.get("hostNetwork") is True:
        fill_host_ports(spec)
    named = (text(member(claim, "metadata").get("name")) for claim in claims)  # one without a name is refused
    names = dict.fromkeys(name for name in named if name)
    if names:
        others = [volume for volume in mappings(spec.get("volumes")) if volume.get("name") not in names]
        spec["volumes"] = others + [{"name": name, "emptyDir": {}} for name in names]
    return bare


def _missing(sent: JsonValue, kept: JsonValue, path: str) -> Iterator[str]:
    """Yield the paths of non-empty values in `sent` that are absent from `kept`; empty ones may be left out."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for name, value in sent.items():
            if name in kept:
                yield from _missing(value, kept[name], f"{path}.{name}")
            elif value:
                yield f"{path}.{name}"
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for index, (before, after) in enumerate(zip(sent, kept, strict=True)):
            yield from _missing(before, after, f"{path}[{index}]")


def _translate(refusal: ApiError) -> list[Fault]:
    """Return the faults of the template, by the apiserver's own validation."""
    # Causes without the template's fields come from a ValidatingAdmissionPolicy, and say nothing about the template.
    causes = mappings(member(msgspec.json.decode(refusal.body or b"{}"), "details").get("causes"))
    reported = [(text(cause.get("field")), text(cause.get("message"))) for cause in causes]
    if not reported:
        return [Fault("spec.template", f"Invalid value: {refusal.message}")]
    return [Fault(f"spec.{field}", message) for field, message in reported if field.startswith(_OURS)]


def _is_unrelated(refusal: ApiError) -> bool:
    """Report whether the refusal is not about the template.

    The namespace is being deleted, or a quota, a policy or missing rights refuse PodTemplates, which are never stored.
    """
    return refusal.code in (403, 404) or (refusal.code < 500 and refusal.message.startswith(_OF_ANOTHER_WEBHOOK))
