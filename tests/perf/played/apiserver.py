"""The HTTP side of the stand-in: LIST in pages, WATCH with bookmarks, reads, and writes that are answered at once."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec
from aiohttp import web

from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import Resource
from flotilla_common.clock import SystemClock
from tests.perf.played.collection import Collection, Event, Expired, Key
from tests.perf.played.documents import Conflict, expect, names, patched, replaced, selects
from tests.testkit.documents import Json

BOOKMARK_SECONDS = 10.0
"""Seconds without an event after which a watch gets a bookmark; an apiserver's are about a minute apart."""

BATCH_SECONDS = 0.005
"""The events of this time are sent to a watch together: the stand-in needs its CPU time for nothing else."""

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/(?P<version>[^/]+))(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)


Settle = Callable[[Resource, Json], Json]


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.code = code
        self.reason = reason


class Target(msgspec.Struct, frozen=True):
    """The collection and the object that a request is about."""

    collection: Collection
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        return self.namespace, self.name


class Apiserver:
    """Answers requests from collections."""

    def __init__(self, collections: Iterable[Collection], last_version: Callable[[], int], settle: Settle) -> None:
        """`settle` returns what becomes of a new object at once: a pod that runs."""
        self._collections = {
            (one.resource.group, one.resource.version, one.resource.plural): one for one in collections
        }
        self._last_version = last_version
        self._settle = settle
        self._clock = SystemClock()
        self.requests: Counter[str] = Counter()
        self.on_created: list[Callable[[Resource, Json], None]] = []

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of an apiserver."""
        return [
            web.get("/version", self._version),
            web.get("/apis/{group}/{version}", self._discovery),
            web.get("/api/v1", self._discovery),
            web.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", self._review),
            web.route("*", "/{path:api.*}", self._serve),
        ]

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})

    async def _discovery(self, request: web.Request) -> web.Response:
        wanted = request.match_info.get("group", ""), request.match_info.get("version", "v1")
        served = [one.resource for (*place, _), one in self._collections.items() if tuple(place) == wanted]
        entries = [{"name": one.plural, "kind": one.kind, "namespaced": one.namespaced} for one in served]
        return web.json_response({"kind": "APIResourceList", "resources": entries})

    async def _review(self, request: web.Request) -> web.Response:
        """Allow everything to everybody."""
        review: Json = msgspec.json.decode(await request.read())
        return web.json_response(review | {"status": {"allowed": True}})

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        try:
            target = self._target(request.path)
            resource, query = target.collection.resource, request.query
            if request.method == "GET" and not target.name and query.get("watch"):
                self.requests[f"watch {resource.plural}"] += 1
                return await self._watch(request, target, query)
            verb = "list" if request.method == "GET" and not target.name else request.method.lower()
            self.requests[f"{verb} {resource.plural}"] += 1
            code, body = self._answer(request.method, target, query, request.content_type, await request.read())
        except Refused as error:
            code, body = error.code, status(error)
        return web.Response(status=code, body=body, content_type="application/json")

    def _target(self, path: str) -> Target:
        match = _PATH.fullmatch(path)
        parts = match.groupdict(default="") if match else {}
        place = parts.get("group", ""), parts.get("version") or "v1", parts.get("plural", "")
        collection = self._collections.get(place)
        if collection is None:
            raise Refused(404, "NotFound", f"{path} is not served")
        return Target(collection, parts["namespace"], parts["name"], parts["subresource"])

    def _answer(
        self, method: str, target: Target, query: Mapping[str, str], content_type: str, body: bytes
    ) -> tuple[int, bytes]:
        try:
            match method:
                case "GET":
                    return 200, self._read(target) if target.name else self._list(target, query)
                case "POST":
                    return 201, self._create(target, msgspec.json.decode(body), dry_run=bool(query.get("dryRun")))
                case "PATCH":
                    return 200, self._patch(target, msgspec.json.decode(body), content_type)
                case "PUT":
                    return 200, self._replace(target, msgspec.json.decode(body))
                case "DELETE":
                    return 200, self._delete(target, msgspec.json.decode(body) if body else {})
                case _:
                    raise Refused(405, "MethodNotAllowed")
        except Conflict as error:
            raise Refused(409, "Conflict", str(error)) from error
        except ValueError as error:
            raise Refused(422, "Invalid", str(error)) from error

    def _read(self, target: Target) -> bytes:
        body = target.collection.get(target.key)
        if body is None:
            raise Refused(404, "NotFound", f"{target.collection.resource.plural} {target.name!r} not found")
        return body

    def _list(self, target: Target, query: Mapping[str, str]) -> bytes:
        """Return one page. Later pages have the version of the first: newer objects in them come again as events."""
        version, _, start = query.get("continue", "").partition(":")
        limit, name = int(query.get("limit") or 0), names(query.get("fieldSelector", ""))
        page = target.collection.page(int(start or 0), limit, _wanted(target.namespace, name))
        bodies = page.bodies
        if selector := query.get("labelSelector", ""):
            bodies = [body for body in bodies if selects(selector, _labels(body))]
        version = version or str(self._last_version())
        meta: Json = {"resourceVersion": version} | ({"continue": f"{version}:{page.next}"} if page.next else {})
        resource = target.collection.resource
        head = {"apiVersion": resource.api_version, "kind": f"{resource.kind}List", "metadata": meta}
        return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(bodies) + b"]}"

    def _create(self, target: Target, document: Json, *, dry_run: bool) -> bytes:
        resource = target.collection.resource
        meta = document["metadata"]
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{self._last_version()}"
        key = (target.namespace, meta["name"])
        if key in target.collection:
            raise Refused(409, "AlreadyExists", f"{resource.plural} {key[1]!r} already exists")
        now = rfc3339(self._clock.now())
        own: Json = {"namespace": key[0]} if key[0] else {}
        own |= {"uid": f"made-{self._last_version()}-{key[1]}", "creationTimestamp": now, "generation": 1}
        document = self._settle(resource, document | {"metadata": meta | own})
        if dry_run:
            return msgspec.json.encode(document)
        body = target.collection.put(key, document)
        for listener in self.on_created:
            listener(resource, document)
        return body

    def _patch(self, target: Target, patch: Json, content_type: str) -> bytes:
        stored = msgspec.json.decode(self._read(target))
        return target.collection.put(target.key, patched(stored, patch, content_type, target.subresource))

    def _replace(self, target: Target, document: Json) -> bytes:
        stored = msgspec.json.decode(self._read(target))
        return target.collection.put(target.key, replaced(stored, document, target.subresource))

    def _delete(self, target: Target, options: Json) -> bytes:
        expect(msgspec.json.decode(self._read(target)), {"metadata": options.get("preconditions")})
        return target.collection.remove(target.key)

    async def _watch(self, request: web.Request, target: Target, query: Mapping[str, str]) -> web.StreamResponse:
        if query.get("sendInitialEvents"):
            raise Refused(422, "Invalid", "sendInitialEvents is forbidden for watch unless the feature gate is on")
        collection, until = target.collection, self._clock.monotonic() + float(query.get("timeoutSeconds", "300"))
        wanted = _wanted(target.namespace, names(query.get("fieldSelector", "")))
        try:
            missed = collection.since(int(query.get("resourceVersion") or 0))
        except Expired:
            raise Refused(410, "Expired", "too old resource version") from None
        pending = [event.line for event in missed if wanted(event.key)]
        changed = asyncio.Event()

        def take(event: Event) -> None:
            if wanted(event.key):
                pending.append(event.line)
                changed.set()

        collection.watchers.append(take)
        try:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            while (left := until - self._clock.monotonic()) > 0:
                if not pending:
                    pending.extend(await self._silence(changed, min(left, BOOKMARK_SECONDS), collection.resource))
                sent, pending[:] = b"".join(pending), []
                changed.clear()
                await response.write(sent)
                await self._clock.sleep(BATCH_SECONDS)
        finally:
            collection.watchers.remove(take)
        return response

    async def _silence(self, changed: asyncio.Event, seconds: float, resource: Resource) -> list[bytes]:
        """Wait for an event; returns a bookmark if there was none."""
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            meta = {"resourceVersion": str(self._last_version())}
            body = {**resource.type_meta, "metadata": meta}
            return [msgspec.json.encode({"type": "BOOKMARK", "object": body}) + b"\n"]
        return []


def status(error: Refused) -> bytes:
    """Return the Status of an error."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": error.code}
    return msgspec.json.encode(body | {"reason": error.reason, "message": str(error)})


def _wanted(namespace: str, name: str) -> Callable[[Key], bool]:
    return lambda key: namespace in ("", key[0]) and name in ("", key[1])


def _place(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


def _labels(body: bytes) -> Mapping[str, str]:
    return msgspec.json.decode(body)["metadata"].get("labels") or {}
