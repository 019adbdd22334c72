"""The simulated apiserver as one process sees it: `Api`, over a wire, with every request in the history."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec

from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import ApiError, Page, Unreachable, WatchEvent, delete_options
from flotilla_common.kube.watch import bookmark
from tests.simulation.apiserver import errors
from tests.simulation.apiserver.paths import parse
from tests.simulation.apiserver.server import VERSION, ApiServer
from tests.simulation.apiserver.wire import Delivery, PlainWire, Request, Wire
from tests.simulation.apiserver.write_handler import Reply
from tests.simulation.history import Call
from tests.testkit.shards import is_in_shard

T = TypeVar("T")


class SimulatedApi:
    """Requests of one writer."""

    def __init__(self, server: ApiServer, writer: str, wire: Wire | None = None) -> None:
        self._server = server
        self.writer = writer
        self.wire: Wire = wire or PlainWire(server.clock)

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        request = self._request("get", resource, namespace, name, subresource)
        return await self._carry(request, lambda: self._server.get(resource, namespace, name, subresource))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        token: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
        shard_selector: str = "",
    ) -> Page:
        def serve() -> Awaitable[Page]:
            return self._server.list(
                resource, namespace, label_selector, field_selector, limit, token, resource_version
            )

        page = await self._carry(self._request("list", resource, namespace), serve)
        if shard_selector and self._server.has_shards:
            items = [item for item in page.items if is_in_shard(shard_selector, item)]
            page = msgspec.structs.replace(page, items=items, sharded=True)
        return msgspec.structs.replace(page, items=[_metadata(item) for item in page.items]) if metadata_only else page

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        *,
        namespace: str = "",
        field_selector: str = "",
        timeout: float = 300,
        shard_selector: str = "",
    ) -> AsyncGenerator[WatchEvent]:
        name = _name_in(field_selector)
        request = self._request("watch", resource, namespace)
        accepted = await self._carry(
            request, lambda: self._server.watch(resource, resource_version, namespace, name, timeout)
        )
        yield WatchEvent("BOOKMARK", bookmark(resource_version))
        async for event in self._delivered(request, accepted, shard_selector):
            yield event

    async def stream(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        field_selector: str = "",
        timeout: float = 300,
        shard_selector: str = "",
    ) -> AsyncGenerator[WatchEvent]:
        name = _name_in(field_selector)
        request = self._request("watch", resource, namespace)
        accepted = await self._carry(request, lambda: self._server.stream(resource, namespace, name, timeout))
        async for event in self._delivered(request, accepted, shard_selector):
            yield event

    async def _delivered(
        self, request: Request, accepted: AsyncGenerator[Delivery], shard_selector: str
    ) -> AsyncGenerator[WatchEvent]:
        selector = shard_selector if self._server.has_shards else ""
        async with contextlib.aclosing(accepted) as deliveries:
            async for delivery in deliveries:
                event = delivery.event
                sent = event.type == "BOOKMARK" or is_in_shard(selector, event.object)
                if sent and await self.wire.deliver(request, delivery):
                    yield event

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        request = self._request("create", resource, namespace, body=body, dry_run=dry_run)
        return await self._write(request, lambda: self._server.create(self.writer, resource, namespace, body, dry_run))

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        *,
        subresource: str = "",
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        dry_run = bool(params and params.get("dryRun"))
        request = self._request("patch", resource, namespace, name, subresource, body, dry_run)

        def serve() -> Awaitable[Reply]:
            return self._server.patch(self.writer, resource, namespace, name, body, content_type, subresource, dry_run)

        return await self._write(request, serve)

    async def replace(self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = "") -> bytes:
        request = self._request("replace", resource, namespace, name, subresource, body)
        return await self._write(
            request, lambda: self._server.replace(self.writer, resource, namespace, name, body, subresource)
        )

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str = "", resource_version: str = ""
    ) -> bytes:
        return await self.delete_with(resource, namespace, name, delete_options(resource, uid, resource_version))

    async def delete_with(self, resource: Resource, namespace: str, name: str, options: Json) -> bytes:
        """DELETE with any DeleteOptions: a grace period, a propagation policy."""
        request = self._request("delete", resource, namespace, name)
        return await self._write(request, lambda: self._server.delete(self.writer, resource, namespace, name, options))

    async def raw(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
        """/version, DELETE with options, the binding and the eviction of a pod."""
        if path == "/version":
            return msgspec.json.encode({"gitVersion": VERSION})
        resource, namespace, name, subresource = parse(path)
        if method == "DELETE":
            options = msgspec.json.decode(body, type=Json) if body else {}
            return await self.delete_with(resource, namespace, name, options)
        posts = {"binding": self._server.bind, "eviction": self._server.evict}
        if method == "POST" and resource.plural == POD.plural and subresource in posts:
            request = self._request("create", POD, namespace, name, subresource, body)
            return await self._write(request, lambda: posts[subresource](self.writer, POD, namespace, name, body))
        raise errors.unknown_resource()

    async def close(self) -> None:
        """There is no connection to close."""

    def _request(
        self,
        verb: str,
        resource: Resource,
        namespace: str,
        name: str = "",
        subresource: str = "",
        body: bytes = b"",
        dry_run: bool = False,
    ) -> Request:
        return Request(
            writer=self.writer,
            index=self._server.history.next_index(self.writer),
            verb=verb,
            resource=resource,
            namespace=namespace,
            name=name,
            subresource=subresource,
            body=body,
            dry_run=dry_run,
        )

    async def _write(self, request: Request, serve: Callable[[], Awaitable[Reply]]) -> bytes:
        committed = 0

        async def commit() -> bytes:
            nonlocal committed
            reply = await serve()
            committed = reply.revision
            return reply.raw

        return await self._carry(request, commit, lambda: committed)

    async def _carry(
        self, request: Request, serve: Callable[[], Awaitable[T]], committed: Callable[[], int] = lambda: 0
    ) -> T:
        """Send the request over the wire and record how it ended."""
        sent, outcome = self._server.clock.monotonic(), "ok"
        try:
            return await self.wire.carry(request, serve)
        except ApiError as error:
            outcome = error.reason or f"HTTP {error.code}"
            raise
        except Unreachable:
            outcome = "unreachable"
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            self._server.history.answered(
                Call(
                    at=sent,
                    until=self._server.clock.monotonic(),
                    writer=request.writer,
                    verb=request.verb,
                    resource=request.resource,
                    namespace=request.namespace,
                    name=request.name,
                    subresource=request.subresource,
                    dry_run=request.dry_run,
                    outcome=outcome,
                    index=request.index,
                    revision=committed(),
                )
            )


def _name_in(field_selector: str) -> str:
    """Return the name that a field selector demands; empty without one."""
    field, _, name = field_selector.partition("=")
    if field not in ("", "metadata.name"):
        raise NotImplementedError("watches of objects that are chosen by other fields are not simulated")
    return name


def _metadata(item: msgspec.Raw) -> msgspec.Raw:
    metadata: Json = {"metadata": msgspec.json.decode(item, type=Json)["metadata"]}
    document = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"} | metadata
    return msgspec.Raw(msgspec.json.encode(document))
