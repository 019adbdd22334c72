"""A tiny apiserver: objects by resource, namespace and name, versions, conflicts, pages of two, and a log of writes."""

from collections.abc import Callable
from typing import Any, cast

import msgspec
from prometheus_client import CollectorRegistry

from flotilla_common.api.admission.review import Answer
from flotilla_common.api.documents import merge
from flotilla_common.api.resources import Resource
from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Journal
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError, Page
from flotilla_webhook.budgetrecords import COMPONENT, BudgetRecords
from flotilla_webhook.counting import LiveCounts
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.protection import Protection
from flotilla_webhook.tools import LiveTools
from tests.support.dice import Dice
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json


class FakeApi:
    """The calls that the webhook makes. `refuse` may raise instead of a create."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.writes: list[tuple[str, str]] = []
        self.refuse: Callable[[Json], None] = lambda _: None
        self.fail_lists: ApiError | None = None
        self.sent: list[Json] = []
        self.lists: list[str] = []
        """Plurals of what was listed."""
        self.gets: list[tuple[str, str]] = []
        """Plural and name of what was read by itself."""
        self.discovery: dict[str, Json] = {}
        """By path."""
        self.version = 0

    @property
    def api(self) -> Api:
        return cast("Api", self)

    def put(self, resource: Resource, document: Json) -> Json:
        metadata = document.setdefault("metadata", {})
        self.version += 1
        metadata["resourceVersion"] = str(self.version)
        self.objects[resource.plural, metadata.get("namespace", ""), metadata["name"]] = document
        return document

    def named(self, resource: Resource, namespace: str, name: str) -> Json:
        try:
            return self.objects[resource.plural, namespace, name]
        except KeyError:
            raise ApiError(404, "NotFound", f'{resource.plural} "{name}" not found') from None

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        self.gets.append((resource.plural, name))
        return msgspec.json.encode(self.named(resource, namespace, name))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        limit: int = 0,
        token: str = "",
        label_selector: str = "",
        **_: Any,
    ) -> Page:
        self.lists.append(resource.plural)
        if self.fail_lists:
            raise self.fail_lists
        wanted = [pair.partition("=")[::2] for pair in label_selector.split(",") if pair]
        found = [
            msgspec.Raw(msgspec.json.encode(document))
            for (plural, where, _name), document in self.objects.items()
            if plural == resource.plural
            and namespace in ("", where)
            and all(document["metadata"].get("labels", {}).get(key) == value for key, value in wanted)
        ]
        start = int(token or 0)
        more = str(start + 2) if start + 2 < len(found) else ""
        return Page(found[start : start + 2], str(self.version), more)

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        document = msgspec.json.decode(body)
        self.sent.append(document)
        self.refuse(document)
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
        self, resource: Resource, namespace: str, name: str, body: bytes, content_type: str, subresource: str = ""
    ) -> bytes:
        """A merge patch; with a version or uid in it, of exactly that."""
        assert content_type == "application/merge-patch+json"
        stored, change = self.named(resource, namespace, name), msgspec.json.decode(body)
        demanded = {key: change.get("metadata", {}).get(key) for key in ("uid", "resourceVersion")}
        if any(value is not None and value != stored["metadata"].get(key) for key, value in demanded.items()):
            raise ApiError(409, "Conflict", "the object has been modified")
        self.writes.append(("patch", name))
        return msgspec.json.encode(self.put(resource, merge(stored, change)))

    async def raw(self, method: str, path: str) -> bytes:
        """What the discovery says of a group and version."""
        try:
            return msgspec.json.encode(self.discovery[path])
        except KeyError:
            raise ApiError(404, "NotFound", "the server could not find the requested resource") from None


def tools(cluster: FakeApi, gates: str = "") -> LiveTools:
    """What the admission of kinds looks at, over a fake cluster."""
    parsed = Gates.parse(gates)
    protection = Protection(parsed, LiveCounts(cluster.api), Metrics(CollectorRegistry()), lambda _: None)
    return LiveTools(cluster.api, FakeClock(), parsed, protection, "kruise-system")


def records(
    cluster: FakeApi, bus: FakeBus | None = None, log: Callable[[bytes], None] = lambda _: None
) -> BudgetRecords:
    """What is told of budgets, over a fake cluster and a fake bus."""
    clock = FakeClock()
    journal, events = Journal(bus or FakeBus(), clock, "webhook", "1"), Recorder(cluster.api, clock, Dice(), COMPONENT)
    return BudgetRecords(journal, events, Metrics(CollectorRegistry()), log)


def applied(document: Json, answer: Answer) -> Json:
    """The document with the patch of the answer."""
    result: Json = msgspec.json.decode(msgspec.json.encode(document))
    for operation in answer.patch:
        *path, last = [step.replace("~1", "/").replace("~0", "~") for step in operation.path.split("/")[1:]]
        place: Any = result
        for step in path:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if operation.op == "remove":
            place.pop(int(last) if isinstance(place, list) else last)
        elif isinstance(place, list) and operation.op == "add":
            place.insert(int(last) if last != "-" else len(place), operation.value)
        elif isinstance(place, list):
            place[int(last)] = operation.value
        else:
            place[last] = operation.value
    return result
