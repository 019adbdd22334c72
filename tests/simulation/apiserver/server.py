"""The simulated apiserver: the resources that it serves, and the way from a request to the store.

It runs in one process with all its clients. Only admission takes time, and waiting for future versions; the latency
both ways is the wire's.
"""

from collections.abc import AsyncGenerator

import msgspec

from flotilla_common.api.documents import mapping, mappings, member
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import Page
from flotilla_common.model import kubelet
from tests.simulation.apiserver import errors, scale
from tests.simulation.apiserver.admission import Admission
from tests.simulation.apiserver.json_patch import PatchError
from tests.simulation.apiserver.kinds.base import Kind, without_nulls
from tests.simulation.apiserver.kinds.custom import CustomKind
from tests.simulation.apiserver.kinds.registry import builtin
from tests.simulation.apiserver.read_handler import ReadHandler
from tests.simulation.apiserver.store import Store
from tests.simulation.apiserver.wire import Delivery
from tests.simulation.apiserver.write_handler import Reply, Where, WriteHandler
from tests.simulation.history import History

VERSION = "v1.36.3"
"""The release whose rules these are, as contract tests show."""

MAX_BODY = 3 << 20
"""Bytes; larger requests are refused."""


class ApiServer:
    """One apiserver with its store."""

    def __init__(self, clock: Clock, history: History, admission: Admission | None = None) -> None:
        self.clock = clock
        self.history = history
        self.store = Store(clock, history)
        self.streams_lists = True
        self.has_shards = True
        """Whether a watch may begin with a list, as with the feature gate WatchList."""
        self._reader = ReadHandler(self.store, clock)
        self._writer = WriteHandler(self.store, clock, admission)
        self._kinds = {(kind.resource.group, kind.resource.plural): kind for kind in builtin()}

    @property
    def admission(self) -> Admission | None:
        """Return the admission of writes; None admits all."""
        return self._writer.admission

    @admission.setter
    def admission(self, admission: Admission | None) -> None:
        self._writer.admission = admission

    def kind(self, resource: Resource) -> Kind:
        """Return the rules of a resource. Raises ApiError 404 when it is not served."""
        kind = self._kinds.get((resource.group, resource.plural))
        if kind is None:
            raise errors.unknown_resource()
        return kind

    def kind_of(self, group: str, kind: str) -> Kind | None:
        """Return the rules of a kind in an owner reference; None when it is not served."""
        found = (known for known in self._kinds.values() if known.resource.kind == kind)
        return next((known for known in found if known.resource.group == group), None)

    def kinds(self) -> list[Kind]:
        """Everything that is served."""
        return list(self._kinds.values())

    def define(self, definition: Json) -> Resource:
        """Serve the storage version of a CustomResourceDefinition, as if it had been applied and established."""
        spec = definition["spec"]
        version = next(one for one in mappings(spec["versions"]) if one.get("storage"))
        names, namespaced = member(spec, "names"), spec.get("scope") == "Namespaced"
        resource = Resource(spec["group"], version["name"], names["plural"], names["kind"], namespaced)
        self._kinds[(resource.group, resource.plural)] = CustomKind(resource, version)
        return resource

    def undefine(self, resource: Resource) -> None:
        """Stop serving a custom resource; its objects are gone."""
        kind = self._kinds.pop((resource.group, resource.plural))
        self.store.drop(kind.resource, "apiserver")

    def compact(self, keep: int = 0) -> None:
        """Forget history but for the last `keep` revisions: older watches and LISTs must start over."""
        revision = self.store.revision - keep
        self._reader.compacted = revision
        self.store.compact(revision)

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        """One object."""
        kind = self.kind(resource)
        stored = self._reader.get(kind, namespace, name)
        if subresource == "scale":
            return msgspec.json.encode(scale.view(_scalable(kind), stored.document))
        _check_subresource(kind, subresource)
        return stored.raw

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        token: str = "",
        resource_version: str = "",
    ) -> Page:
        """One page of objects."""
        kind = self.kind(resource)
        if resource_version:
            await self._reader.reached(resource_version)
        return self._reader.list(kind, namespace, labels, fields, limit, token)

    async def watch(
        self, resource: Resource, resource_version: str, namespace: str, name: str, timeout: float
    ) -> AsyncGenerator[Delivery]:
        """Accept a watch, of one namespace or one name if given. The result yields the events after the version.

        Raises ApiError 404, 410, 504.
        """
        kind = self.kind(resource)
        revision = await self._reader.reached(resource_version or str(self.store.revision))
        return self._reader.watch(kind, namespace, name, revision, timeout)

    async def stream(self, resource: Resource, namespace: str, name: str, timeout: float) -> AsyncGenerator[Delivery]:
        """Accept a watch that begins with a list. Raises ApiError 404, 422."""
        kind = self.kind(resource)
        if not self.streams_lists:
            raise errors.no_streams()
        return self._reader.stream(kind, namespace, name, timeout)

    async def create(
        self, writer: str, resource: Resource, namespace: str, body: bytes, dry_run: bool = False
    ) -> Reply:
        """POST of an object."""
        kind = self.kind(resource)
        place = namespace if kind.resource.namespaced else ""
        document = _decoded(kind, body)
        _check_type(kind, document)
        return await self._writer.create(Where(writer=writer, kind=kind, namespace=place, dry_run=dry_run), document)

    async def replace(
        self, writer: str, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = ""
    ) -> Reply:
        """PUT of an object or a subresource."""
        kind = self.kind(resource)
        where = _where(writer, kind, namespace, name, subresource)
        document = _decoded(kind, body)
        if subresource == "scale":
            return await self._scale(where, lambda _: document)
        if kind.create_on_update and where.place not in self.store.table(kind.resource).objects:
            _meant(where, {"metadata": {}}, document)
            return await self._writer.create(where, _versionless(document))
        _check_type(kind, document)
        if not kind.unconditional_update and not mapping(document.get("metadata")).get("resourceVersion"):
            fault = errors.invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(kind.resource.kind, kind.resource.group, name, [fault])
        return await self._writer.update(where, lambda stored: _meant(where, stored, document))

    async def patch(
        self,
        writer: str,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Reply:
        """PATCH of an object or a subresource."""
        kind = self.kind(resource)
        where = _where(writer, kind, namespace, name, subresource, dry_run)
        patch, nulls = _decoded_patch(body), kind.typed and b"null" in body

        def change(document: Json) -> Json:
            try:
                patched = kind.patched(document, patch, content_type)
            except PatchError as error:
                told = "the server rejected our request due to an error in our request"
                raise errors.refusal(422, "Invalid", told) from error
            return without_nulls(patched) if nulls else patched

        return await (self._scale(where, change) if subresource == "scale" else self._writer.update(where, change))

    async def delete(
        self, writer: str, resource: Resource, namespace: str, name: str, options: Json, dry_run: bool = False
    ) -> Reply:
        """DELETE of an object; `options` are DeleteOptions."""
        return await self._writer.delete(_where(writer, self.kind(resource), namespace, name, "", dry_run), options)

    async def bind(self, writer: str, resource: Resource, namespace: str, name: str, body: bytes) -> Reply:
        """POST of a pod's binding: it is scheduled. ApiError 409 when it already is."""
        where = _where(writer, self.kind(resource), namespace, name, "binding")
        node = str(member(_decoded(where.kind, body), "target").get("name"))

        def assign(pod: Json) -> Json:
            refused, assigned = "", pod["spec"].get("nodeName")
            if pod["metadata"].get("deletionTimestamp"):
                refused = f"pod {name} is being deleted, cannot be assigned to a host"
            elif assigned:
                refused = f'pod {name} is already assigned to node "{assigned}"'
            if refused:
                raise errors.conflict(f"{where.kind.where}/binding", name, refused)
            return kubelet.scheduled(pod, node, self.clock.now())

        return await self._writer.update(where, assign)

    async def evict(self, writer: str, resource: Resource, namespace: str, name: str, body: bytes) -> Reply:
        """POST of a pod's eviction. There are no budgets that could refuse it."""
        where = _where(writer, self.kind(resource), namespace, name, "eviction")
        return await self._writer.evict(where, _decoded(where.kind, body))

    async def _scale(self, where: Where, change: scale.Change) -> Reply:
        kind = _scalable(where.kind)
        reply = await self._writer.update(where, lambda document: scale.apply(kind, document, change))
        document = msgspec.json.decode(reply.raw, type=Json)
        return Reply(msgspec.json.encode(scale.view(kind, document)), reply.revision)


def _where(writer: str, kind: Kind, namespace: str, name: str, subresource: str, dry_run: bool = False) -> Where:
    if subresource != "scale":
        _check_subresource(kind, subresource)
    place = namespace if kind.resource.namespaced else ""
    return Where(writer=writer, kind=kind, namespace=place, name=name, subresource=subresource, dry_run=dry_run)


def _check_subresource(kind: Kind, subresource: str) -> None:
    if subresource and subresource not in kind.subresources:
        raise errors.unknown_resource()


def _scalable(kind: Kind) -> CustomKind:
    if not isinstance(kind, CustomKind) or not kind.scale_paths:
        raise errors.unknown_resource()
    return kind


def _decoded(kind: Kind, body: bytes) -> Json:
    """Decode the document in a request. Typed decoding drops nulls."""
    if len(body) > MAX_BODY:
        raise errors.refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}")
    try:
        document = msgspec.json.decode(body, type=Json)
    except msgspec.MsgspecError as error:
        raise errors.bad_request(f"the object provided is unrecognized: {error}") from error
    return without_nulls(document) if kind.typed and b"null" in body else document


def _decoded_patch(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except msgspec.MsgspecError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from error


def _check_type(kind: Kind, document: Json) -> None:
    """Check that the body is of the kind in the path."""
    found = document.get("apiVersion"), document.get("kind")
    wanted = kind.resource.api_version, kind.resource.kind
    if found != wanted:
        told = f'{found[1]} in version "{found[0]}" cannot be handled as a {kind.resource.kind}'
        raise errors.bad_request(told)


def _meant(where: Where, stored: Json, document: Json) -> Json:
    """Return the document of a PUT, if its uid is that of the stored object."""
    uid, found = document["metadata"].get("uid"), stored["metadata"].get("uid", "")
    if uid and uid != found:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        raise errors.conflict(where.kind.where, where.name, why)
    return document


def _versionless(document: Json) -> Json:
    metadata = {key: value for key, value in document["metadata"].items() if key != "resourceVersion"}
    return document | {"metadata": metadata}
