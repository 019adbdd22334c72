"""A namespace on an apiserver, and documents instead of bytes."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import msgspec

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, JOB, POD, Resource
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import Api, ApiError, WatchEvent
from flotilla_common.kube.watch import ends_list
from tests.testkit.documents import typed

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

TIMEOUT_SECONDS = 60.0
"""Seconds until what must come counts as missing: the real garbage collector looks for new kinds twice a minute."""

POLL_SECONDS = 0.05

_numbers = count()


class Harness:
    """The namespace of one test. The CloneSet CRD is served, without admission by our webhook.

    `forget` compacts the apiserver's history up to the present.
    """

    def __init__(self, api: Api, namespace: str, forget: Callable[[], Awaitable[None]] | None = None) -> None:
        self.api = api
        self.namespace = namespace
        self._forget = forget

    async def forget(self) -> None:
        """Nothing of the past can be asked for any more."""
        assert self._forget is not None
        await self._forget()

    def _space(self, resource: Resource) -> str:
        return self.namespace if resource.namespaced else ""

    async def create(self, resource: Resource, document: Json, *, dry_run: bool = False) -> Json:
        """POST."""
        typed = {"apiVersion": resource.api_version, "kind": resource.kind} | document
        return decode(await self.api.create(resource, self._space(resource), encode(typed), dry_run=dry_run))

    async def get(self, resource: Resource, name: str, subresource: str = "") -> Json:
        """GET."""
        return decode(await self.api.get(resource, self._space(resource), name, subresource))

    async def patch(
        self, resource: Resource, name: str, patch: object, kind: str = MERGE, subresource: str = ""
    ) -> Json:
        """PATCH."""
        space = self._space(resource)
        return decode(await self.api.patch(resource, space, name, encode(patch), kind, subresource=subresource))

    async def replace(self, resource: Resource, document: Json, subresource: str = "") -> Json:
        """PUT."""
        name = document["metadata"]["name"]
        return decode(await self.api.replace(resource, self._space(resource), name, encode(document), subresource))

    async def delete(self, resource: Resource, name: str, options: Json | None = None) -> Json:
        """DELETE, with options if given."""
        if options is None:
            return decode(await self.api.delete(resource, self._space(resource), name))
        path = resource.path(self._space(resource), name)
        headers = {"Content-Type": "application/json"}
        return decode(await self.api.raw("DELETE", path, encode(options), headers))

    async def post(self, resource: Resource, name: str, subresource: str, document: Json) -> Json:
        """POST to a subresource."""
        path = resource.path(self._space(resource), name, subresource)
        return decode(await self.api.raw("POST", path, encode(document), {"Content-Type": "application/json"}))

    async def names(self, resource: Resource, **selection: Any) -> list[str]:
        """Return the names of a LIST."""
        page = await self.api.list(resource, self.namespace, **selection)
        return [decode(item)["metadata"]["name"] for item in page.items]

    async def exists(self, resource: Resource, name: str) -> bool:
        """Report whether the object exists now."""
        return name in await self.names(resource)

    async def version(self) -> str:
        """Return the apiserver's present resourceVersion."""
        return (await self.api.list(CONFIG_MAP, self.namespace, limit=1)).resource_version

    @asynccontextmanager
    async def watching(self, resource: Resource, since: str = "", name: str = "") -> "AsyncGenerator[Watched]":
        """Watch the namespace, or one name in all namespaces, inside the block, from now or from a version on."""
        since = since or await self.version()
        fields, namespace = self._selection(name)
        async with _following(self.api.watch(resource, since, namespace=namespace, field_selector=fields)) as watched:
            yield watched

    @asynccontextmanager
    async def streaming(self, resource: Resource, name: str = "") -> "AsyncGenerator[Watched]":
        """List and watch the namespace, or one name in all namespaces, in one request inside the block."""
        fields, namespace = self._selection(name)
        async with _following(self.api.stream(resource, namespace=namespace, field_selector=fields)) as watched:
            yield watched

    def _selection(self, name: str) -> tuple[str, str]:
        """Return field selector and namespace of a watch."""
        return (f"metadata.name={name}", "") if name else ("", self.namespace)


@asynccontextmanager
async def _following(watch: AsyncIterator[WatchEvent]) -> "AsyncGenerator[Watched]":
    watched = Watched()
    task = asyncio.create_task(watched.follow(watch))
    try:
        yield watched
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Watched:
    """The events that a watch delivered."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Json]] = []
        self.bookmarks: list[str] = []
        self.list_end = ""
        """The version of the bookmark that ends the list of a stream."""
        self.listed: list[tuple[str, Json]] = []
        """The events before that."""

    async def follow(self, watch: AsyncIterator[WatchEvent]) -> None:
        """Take what comes."""
        async for event in watch:
            document = decode(event.object)
            if ends_list(event):
                self.list_end = document["metadata"]["resourceVersion"]
                self.listed, self.events = self.events, []
            elif event.type == "BOOKMARK":
                self.bookmarks.append(document["metadata"]["resourceVersion"])
            else:
                self.events.append((event.type, document))

    @property
    def told(self) -> list[tuple[str, str]]:
        """Return types and names of the events, in order."""
        return [(kind, document["metadata"]["name"]) for kind, document in self.events]

    @property
    def names(self) -> list[str]:
        """Return the names in the list of a stream that nothing has changed meanwhile."""
        assert {kind for kind, _ in self.listed} <= {"ADDED"}
        return sorted(document["metadata"]["name"] for _, document in self.listed)

    async def until_listed(self) -> None:
        """Wait for the end of the list of a stream."""
        await eventually(lambda: _done(bool(self.list_end)))

    async def until(self, number: int) -> None:
        """Wait for this number of events."""
        await eventually(lambda: _done(len(self.events) >= number))

    async def until_told(self, kind: str, name: str) -> None:
        """Wait for an event of this type and name; a real cluster may change pods before it."""
        await eventually(lambda: _done((kind, name) in self.told))


async def _done(value: bool) -> bool:
    return value


Exchange = Callable[[Harness], Awaitable[None]]
Play = Callable[[Exchange], None]
"""Runs a test in a fresh namespace."""


def encode(document: object) -> bytes:
    return msgspec.json.encode(document)


def decode(body: bytes | msgspec.Raw) -> Json:
    return json.loads(bytes(body))


async def refused(request: Awaitable[object]) -> ApiError:
    """Return the error of a request that must fail."""
    try:
        answer = await request
    except ApiError as error:
        return error
    raise AssertionError(f"accepted: {answer}")


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds."""
    for _ in range(int(TIMEOUT_SECONDS / POLL_SECONDS)):
        if await condition():
            return
        await asyncio.sleep(POLL_SECONDS)
    raise TimeoutError


def meta(document: Json) -> Json:
    """Return the metadata of a document."""
    return document["metadata"]


def version_of(document: Json) -> int:
    """Return the resourceVersion as a number."""
    return int(document["metadata"]["resourceVersion"])


def pod(name: str, *, node: str = "", **metadata: Any) -> Json:
    """Return a pod of two containers that is not scheduled or run; with a node it counts as scheduled."""
    containers = [{"name": "main", "image": "nginx:1"}, {"name": "aux", "image": "busybox:1"}]
    spec: Json = {"containers": containers, "schedulerName": "nobody"} | ({"nodeName": node} if node else {})
    return {"apiVersion": POD.api_version, "kind": POD.kind, "metadata": {"name": name} | metadata, "spec": spec}


def job(name: str, *, policy: str = "Never") -> Json:
    """Return a suspended Job."""
    template = {"spec": {"containers": [{"name": "main", "image": "busybox:1"}], "restartPolicy": policy}}
    return typed(JOB, name, spec={"suspend": True, "template": template})


def cloneset(name: str, *, spec: Json | None = None, **metadata: Any) -> Json:
    """Return a CloneSet without a controller."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    wanted = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template} | (spec or {})
    return {
        "apiVersion": CLONE_SET.api_version,
        "kind": CLONE_SET.kind,
        "metadata": {"name": name} | metadata,
        "spec": wanted,
    }


def config_map(name: str, **metadata: Any) -> Json:
    """Return an object of the simplest kind."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name} | metadata}


def owned_by(owner: Json, *, controller: bool = False, blocks: bool = False) -> Json:
    """Return a reference to an owner."""
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta(owner)["name"]}
    return reference | {"uid": meta(owner)["uid"], "controller": controller, "blockOwnerDeletion": blocks}


STATUS: Json = dict.fromkeys(
    ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas"), 1
)
"""Members that the schema of a CloneSet's status requires."""


def causes(error: ApiError) -> set[tuple[str, str, str]]:
    """Field, reason and message of everything that a refusal names."""
    found = json.loads(error.body)["details"]["causes"]
    return {(cause.get("field", ""), cause["reason"], cause["message"]) for cause in found}
