"""The controller context and the responder context of unit tests, over plain tables.

See `flotilla_common.control.controller_context`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar, cast

import msgspec

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.control.controller_context import Handler
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.fence import Fence
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import Outcome, OutcomeKind
from flotilla_common.control.spec import ControllerSpec, Gatherer
from flotilla_common.control.watches import Trigger, Watch
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.mirror.feed import Followed
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Answer, Report
from flotilla_common.node.serving import Sender
from flotilla_common.settings import Settings
from tests.support.fake_clock import FakeClock

T = TypeVar("T", bound=Object)
G = TypeVar("G", bound=Gatherer[Any])
M = TypeVar("M", bound=msgspec.Struct)

TURNS = 20
"""Turns of the event loop: more than a fake needs to answer."""


class FakeContext:
    """A context whose tables tests fill with `put` after the gatherer was built, and whose other answers they set."""

    def __init__(self, *, gates: str = "", unwatched: Collection[Resource] = ()) -> None:
        self.gates = Gates.parse(gates)
        self.settings = Settings()
        self.clock = FakeClock()
        self.unwatched = unwatched
        self.mine = True  # this replica serves every object
        self.server: dict[tuple[Resource, str, str], Object] = {}  # what the apiserver holds, and no table yet
        self.trouble: Exception | None = None  # what reading meets
        self.read_objects: list[Key] = []
        self.gone = True  # does a read confirm that an absent object is gone?
        self.asked: list[tuple[Key, str]] = []  # (key, uid) of calls of `confirm_deleted`
        self.reports: dict[str, Report] = {}  # reports of agents, by the names of the objects
        self.by_name: dict[Resource, FakeNamed] = {}  # what is watched by name
        self.read_names: list[tuple[Resource, str]] = []
        self.woken: list[Key] = []  # by changes of tables
        self.replanned: list[Key] = []  # with `again`
        self.tasks: list[Callable[[], Awaitable[None]]] = []
        self.handlers: dict[str, Handler[Any]] = {}
        self.by_any_replica: set[str] = set()
        self.events: list[tuple[str, Any, Any]] = []  # (component, subject, event)
        self.writes: list[Any] = []  # of executors
        self.outcome = Outcome(kind=OutcomeKind.OK, version="9")
        self.api = cast("Api", None)  # a test that follows kinds beside brings one
        self._tables: dict[Resource, Table[Any]] = {}

    def put(self, watch: Watch[T], *objects: T) -> None:
        """Put these objects into the table."""
        for obj in objects:
            self.table(watch).apply(obj)

    def table(self, watch: Watch[T]) -> Table[T]:
        table = self._tables.setdefault(watch.resource, Table[T]())
        for name, indexer in watch.all_indexes.items():
            table.add_index(name, indexer)
        return table

    def watched(self, watch: Watch[Any]) -> bool:
        return watch.resource not in self.unwatched

    def fence(self, namespace: str, name: str) -> Fence:
        return Fence(lambda: self.owns(namespace, name), lambda: 60.0)

    def owns(self, namespace: str, name: str) -> bool:
        return self.mine

    async def read(self, resource: Resource, namespace: str, name: str) -> object:
        self.read_objects.append((namespace, name))
        if self.trouble is not None:
            raise self.trouble
        found = self.server.get((resource, namespace, name))
        if found is not None:
            self._tables[resource].apply(found)
        return found

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        if self.trouble is not None:
            raise self.trouble
        found = self.server.get((resource, namespace, name))
        if found is None:
            raise ApiError(404, "NotFound", "")
        return msgspec.json.encode(found)

    def build(self, spec: ControllerSpec[Any, G], options: Any = None) -> G:
        """Return the controller's gatherer; its triggers are followed from now on."""
        gatherer = spec.build(self, options)
        for trigger in spec.triggers(gatherer):
            self.follow(trigger)
        return gatherer

    def follow(self, trigger: Trigger[Any]) -> None:
        """Note the objects that changes would have planned."""
        if self.watched(trigger.watch):
            self.table(trigger.watch).listen(lambda old, new: self.woken.extend(trigger.keys(old, new)))

    def requeue(self, namespace: str, name: str) -> None:
        self.replanned.append((namespace, name))

    def confirm_deleted(self, watch: Watch[Any], key: Key, uid: str, asker: Key) -> bool:
        """Answer at once."""
        self.asked.append((key, uid))
        self.requeue(*asker)
        found = self.server.get((watch.resource, *key))
        if found is None or found.metadata.uid != uid:
            return self.gone
        self.table(watch).apply(found)
        return False

    def named(
        self, watch: Watch[Any], wanted: Callable[[], Collection[str]], changed: Callable[[str], None]
    ) -> "FakeNamed":
        return self.by_name.setdefault(watch.resource, FakeNamed(wanted, changed))

    async def newest(self, watch: Watch[T], namespace: str, name: str) -> T | None:
        return self.table(watch).get(namespace, name)

    async def read_named(self, resource: Resource, name: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.read_names.append((resource, name))

    def reported(self, obj: Object) -> Report | None:
        return self.reports.get(obj.metadata.name)

    def add_task(self, task: Callable[[], Awaitable[None]], /) -> None:
        self.tasks.append(task)

    async def work(self) -> None:
        """Run the background tasks until they have done their present work."""
        running = [asyncio.ensure_future(task()) for task in self.tasks]
        for _ in range(TURNS):
            await asyncio.sleep(0)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def answer(self, kind: str, body: type[M], handler: Handler[M], *, by_any_replica: bool = False) -> None:
        self.handlers[kind] = handler
        if by_any_replica:
            self.by_any_replica.add(kind)

    async def tell(self, kind: str, sender: Sender, report: msgspec.Struct) -> Answer | None:
        """Deliver a report or request of a node agent."""
        return await self.handlers[kind](sender, report)

    def recorder(self, component: str, /) -> Recorder:
        return cast("Recorder", _Recorder(self, component))

    def executor(self, recorder: Recorder, /) -> Executor:
        return cast("Executor", _Executor(self))


class FakeNamed:
    """Names whose freshness a test sets; at first, all are known."""

    def __init__(self, wanted: Callable[[], Collection[str]], changed: Callable[[str], None]) -> None:
        self.wanted = wanted
        self.changed = changed
        self.known = Followed(synced=True)
        self.asked: list[str] = []

    def follow(self, name: str) -> Followed:
        self.asked.append(name)
        return self.known


class _Recorder(msgspec.Struct, frozen=True):
    context: FakeContext
    component: str

    def record(self, subject: Any, event: Any, error: str = "") -> None:
        self.context.events.append((self.component, subject, event))


class _Executor(msgspec.Struct, frozen=True):
    context: FakeContext

    async def single(self, subject: Any, action: Any, fence: Fence, trace: str) -> Outcome:
        assert fence.may_send()
        self.context.writes.append(action)
        return self.context.outcome
