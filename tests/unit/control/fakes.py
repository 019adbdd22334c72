"""Small fakes for the control layer: a clock that tests turn by hand, dice without chance, a scripted apiserver."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.control.queue import KeyedQueue
from flotilla_common.kube.interface import ApiError, Page

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that stands still until `advance`; sleeps end at once."""

    def __init__(self) -> None:
        self.elapsed = 1000.0
        self.wrong = 0.0  # seconds that the wall clock was set forward by

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed + self.wrong)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.elapsed += max(seconds, 0)

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds


class NoChance:
    """Always the low end; tokens count up."""

    def __init__(self) -> None:
        self.tokens = 0

    def uniform(self, low: float, high: float) -> float:
        return low

    def token(self) -> str:
        self.tokens += 1
        return f"{self.tokens:010x}"


class Thing(Model):
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class ScriptedApi:
    """Answers writes from a script, and keeps objects for reads and leases."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, object]]] = []
        self.answers: list[Exception | None] = []
        self.objects: dict[str, dict[str, object]] = {}
        self.version = 1

    def _answer(self, verb: str, name: str, body: dict[str, object]) -> None:
        self.requests.append((verb, name, body))
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer

    def _store(self, name: str, body: dict[str, object]) -> bytes:
        self.version += 1
        metadata = dict(body.get("metadata") or {})  # type: ignore[call-overload]
        metadata["resourceVersion"] = str(self.version)
        metadata.setdefault("name", name)
        metadata.setdefault("uid", f"uid-{name}")
        self.objects[name] = {**body, "metadata": metadata}
        return msgspec.json.encode(self.objects[name])

    async def list(self, resource: Resource, namespace: str = "", **_: object) -> Page:
        return Page([msgspec.Raw(msgspec.json.encode(body)) for body in self.objects.values()], str(self.version))

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        if name not in self.objects:
            raise ApiError(404, "NotFound", f"{name} not found")
        return msgspec.json.encode(self.objects[name])

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        document = msgspec.json.decode(body)
        name = document["metadata"]["name"]
        self._answer("create", name, document)
        if name in self.objects:
            raise ApiError(409, "AlreadyExists", f"{name} already exists")
        return self._store(name, document)

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: bytes, content_type: str, **_: object
    ) -> bytes:
        document = msgspec.json.decode(body)
        self._answer("patch", name, document)
        wanted = document.get("metadata", {}).get("resourceVersion")
        held = self.objects.get(name, {"metadata": {}})
        if wanted and wanted != held["metadata"].get("resourceVersion"):  # type: ignore[attr-defined]
            raise ApiError(409, "Conflict", "the object has been modified")
        return self._store(name, {**held, "patched": True})

    async def replace(self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = "") -> bytes:
        document = msgspec.json.decode(body)
        self._answer("replace", name, document)
        held = self.objects.get(name)
        if held is None or held["metadata"]["resourceVersion"] != document["metadata"].get("resourceVersion"):  # type: ignore[index]
            raise ApiError(409, "Conflict", "the object has been modified")
        return self._store(name, document)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str = "", resource_version: str = ""
    ) -> bytes:
        self._answer("delete", name, {})
        if self.objects.pop(name, None) is None:
            raise ApiError(404, "NotFound", f"{name} not found")
        return b'{"kind":"Status","status":"Success"}'


class MemoryStore:
    """A record of the calls to the mirror."""

    def __init__(self, api: ScriptedApi) -> None:
        self._api = api
        self.taken: list[str] = []
        self.gone: list[str] = []
        self.reads: list[str] = []

    def written(self, resource: Resource, body: bytes) -> Thing:
        thing = msgspec.json.decode(body, type=Thing)
        self.taken.append(thing.metadata.name)
        return thing

    def deleted(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        self.gone.append(name)

    async def read(self, resource: Resource, namespace: str, name: str) -> Thing | None:
        self.reads.append(name)
        try:
            return msgspec.json.decode(await self._api.get(resource, namespace, name), type=Thing)
        except ApiError:
            self.gone.append(name)
            return None


class SilentBus:
    """Keeps what was published."""

    def __init__(self) -> None:
        self.published: list[tuple[str, dict[str, object]]] = []

    def publish_soon(self, subject: str, data: bytes, headers: object = None) -> None:
        self.published.append((subject, msgspec.json.decode(data)))


def next_due(queue: KeyedQueue[Any]) -> float | None:
    """Return when the next delayed key becomes ready (monotonic seconds)."""
    return min((state.due for state in queue._states.values() if state.due is not None), default=None)
