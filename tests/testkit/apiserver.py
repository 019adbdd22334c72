"""An apiserver in memory: objects, versions, conflicts, pages, watches, discovery, and a log of what was asked."""

import asyncio
import copy
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from flotilla_common.api.documents import merge
from flotilla_common.api.resources import Resource
from flotilla_common.kube.interface import Api, ApiError, Page, WatchEvent
from flotilla_common.kube.watch import bookmark
from tests.testkit.documents import Json
from tests.testkit.shards import is_in_shard


class FakeApi:
    """The calls of services and commands, answered from `objects`.

    Tests put objects and read `writes`, `gets`, `lists` and `asked`. Creates raise `refusal`, GETs `fail_gets`,
    LISTs `fail_lists`, or what `errors` has for the plural. Pages have `page_size` objects at most.
    """

    def __init__(
        self,
        objects: Mapping[Resource, Iterable[Json]] | None = None,
        *,
        errors: Mapping[str, Exception] | None = None,
        page_size: int = 2,
        version: int = 1,
    ) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.errors = dict(errors or {})
        self.page_size = page_size
        self.version = version
        self.sharded = False
        """True if LISTs have shards. Watches and streams ignore the selector, and their answers do not show it."""
        self.writes: list[tuple[str, str]] = []
        self.refusal: Exception | None = None
        self.fail_gets: Exception | None = None
        self.fail_lists: Exception | None = None
        self.sent: list[Json] = []
        self.lists: list[str] = []
        """Plurals of the resources that were listed."""
        self.selectors: list[str] = []
        """Label selectors of these LISTs."""
        self.gets: list[tuple[str, str]] = []
        """Plural, with its subresource, and name of the objects that were read."""
        self.scales: dict[str, Json] = {}
        """Scales of workloads by name."""
        self.asked: list[tuple[str, str, str]] = []
        """All reads: `get` or `list`, plural, and `namespace/name` or namespace; of others method and path."""
        self.discovery: dict[str, Json] = {"/version": {"gitVersion": "v1.36.0"}}
        """Answers to other requests by path."""
        self._watches: dict[str, asyncio.Queue[WatchEvent]] = {}
        for resource, documents in (objects or {}).items():
            for document in documents:
                self.store(resource, copy.deepcopy(document))

    @property
    def api(self) -> Api:
        """The same as its users see it."""
        return cast("Api", self)

    def put(self, resource: Resource, document: Json) -> Json:
        """Store the object in its next version."""
        metadata = document.setdefault("metadata", {})
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        return self.store(resource, document)

    def store(self, resource: Resource, document: Json) -> Json:
        """Store the object in the version that it names."""
        metadata = document["metadata"]
        namespace = metadata.get("namespace", "") if resource.namespaced else ""
        self.objects[resource.plural, namespace, metadata.get("name") or f"unnamed-{len(self.objects)}"] = document
        return document

    def serve(self, group_version: str, *resources: Json) -> None:
        """Let discovery know these resources of a group in a version."""
        self.discovery[f"/apis/{group_version}"] = {"resources": resources}

    def replace_all(self, resource: Resource, *documents: Json) -> None:
        """Store these objects as all that there are of the resource."""
        for key in [key for key in self.objects if key[0] == resource.plural]:
            del self.objects[key]
        for document in documents:
            self.store(resource, copy.deepcopy(document))

    def named(self, resource: Resource, namespace: str, name: str) -> Json:
        """Return the object, or raise the error of its absence."""
        try:
            return self.objects[resource.plural, namespace, name]
        except KeyError:
            raise ApiError(404, "NotFound", f'{resource.plural} "{name}" not found') from None

    def send(self, resource: Resource, kind: str, document: Json) -> None:
        """Send an event to the watch of the resource."""
        self._events(resource).put_nowait(WatchEvent(kind, msgspec.Raw(msgspec.json.encode(document))))

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        self.gets.append((f"{resource.plural}/{subresource}" if subresource else resource.plural, name))
        self.asked.append(("get", resource.plural, f"{namespace}/{name}"))
        if self.fail_gets:
            raise self.fail_gets
        if subresource == "scale" and name in self.scales:
            return msgspec.json.encode(self.scales[name])
        return msgspec.json.encode(self.named(resource, namespace, name))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        limit: int = 0,
        token: str = "",
        label_selector: str = "",
        shard_selector: str = "",
        **_: Any,
    ) -> Page:
        sharded = self.sharded and bool(shard_selector)
        found = self._listed(resource, namespace, label_selector)
        if sharded:
            found = [raw for raw in found if is_in_shard(shard_selector, raw)]
        start = int(token or 0)
        end = start + min(limit, self.page_size) if limit else len(found)
        return Page([*found[start:end]], str(self.version), str(end) if end < len(found) else "", sharded)

    def _listed(self, resource: Resource, namespace: str, label_selector: str = "") -> Sequence[msgspec.Raw]:
        self.lists.append(resource.plural)
        self.selectors.append(label_selector)
        self.asked.append(("list", resource.plural, namespace))
        if error := self.fail_lists or self.errors.get(resource.plural):
            raise error
        return [
            msgspec.Raw(msgspec.json.encode(document))
            for (plural, where, _name), document in self.objects.items()
            if plural == resource.plural
            and namespace in ("", where)
            and _selects(label_selector, document["metadata"].get("labels", {}))
        ]

    async def stream(
        self, resource: Resource, *, namespace: str = "", field_selector: str = "", **_: object
    ) -> AsyncGenerator[WatchEvent]:
        name = field_selector.removeprefix("metadata.name=")
        for raw in self._listed(resource, namespace):
            if name in ("", msgspec.json.decode(raw)["metadata"].get("name")):
                yield WatchEvent("ADDED", raw)
        yield WatchEvent("BOOKMARK", bookmark(str(self.version), ends_list=True))
        async for event in self.watch(resource, str(self.version)):
            yield event

    async def watch(self, resource: Resource, version: str, **_: object) -> AsyncGenerator[WatchEvent]:
        while True:
            yield await self._events(resource).get()

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        document = msgspec.json.decode(body)
        self.sent.append(document)
        if self.refusal:
            raise self.refusal
        if dry_run:
            return body
        name = document["metadata"]["name"]
        if (resource.plural, namespace, name) in self.objects:
            raise ApiError(409, "AlreadyExists", "already exists")
        self.writes.append(("create", name))
        return msgspec.json.encode(self.put(resource, document))

    async def replace(self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = "") -> bytes:
        document = msgspec.json.decode(body)
        stored = self.named(resource, namespace, name)
        if document["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        self.writes.append(("replace", name))
        return msgspec.json.encode(self.put(resource, document))

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        subresource: str = "",
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        """Merge the patch; one with a version or uid fails on another version or object."""
        assert content_type == "application/merge-patch+json"
        stored, change = self.named(resource, namespace, name), msgspec.json.decode(body)
        demanded = {key: change.get("metadata", {}).get(key) for key in ("uid", "resourceVersion")}
        if any(value is not None and value != stored["metadata"].get(key) for key, value in demanded.items()):
            raise ApiError(409, "Conflict", "the object has been modified")
        if params and "dryRun" in params:
            return msgspec.json.encode(merge(copy.deepcopy(stored), change))
        self.writes.append(("patch", name))
        return msgspec.json.encode(self.put(resource, merge(stored, change)))

    async def raw(self, method: str, path: str, *_: object, **__: object) -> bytes:
        self.asked.append((method, path, ""))
        try:
            return msgspec.json.encode(self.discovery[path])
        except KeyError:
            raise ApiError(404, "NotFound", "the server could not find the requested resource") from None

    def _events(self, resource: Resource) -> asyncio.Queue[WatchEvent]:
        return self._watches.setdefault(resource.plural, asyncio.Queue())


def _selects(selector: str, labels: Mapping[str, str]) -> bool:
    """Report whether labels match a selector of `key=value` and `key`, which any value matches."""
    wanted = (pair.partition("=") for pair in selector.split(",") if pair)
    return all(labels.get(key) == value if sign else key in labels for key, sign, value in wanted)
