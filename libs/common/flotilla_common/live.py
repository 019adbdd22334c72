"""Connects a part of a running service to its mirror's tables, its shards, the bus and the apiserver.

It also reports objects that cannot be decoded.
"""

from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import token_of
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.streams import newest
from flotilla_common.control.controller import Controller
from flotilla_common.control.controller_context import Handler, Named
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.fence import Fence
from flotilla_common.control.journal import Journal
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import Event, ObjectRef, Plan, Reason, State
from flotilla_common.control.reads import AbsenceCheck
from flotilla_common.control.report_buffer import ReportBuffer, StatusReports
from flotilla_common.control.shards import Shards
from flotilla_common.control.watches import Pods, Trigger, Watch, owner_keys
from flotilla_common.kube.discovery import is_installed
from flotilla_common.mirror import scope as mirror_scope
from flotilla_common.mirror.decoder import ObjectDecoder, Undecodable
from flotilla_common.mirror.feed import Reader
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.scope import Needs
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Report
from flotilla_common.node.serving import serve_reports
from flotilla_common.service import Context

T = TypeVar("T", bound=Object)
M = TypeVar("M", bound=msgspec.Struct)

UNDECODABLE = "Undecodable"
"""The reason of the event, and the code on why.v1."""


class LiveContext:
    """The context of one component. `watch` is called for every declared watch before the gatherer is built."""

    def __init__(
        self,
        context: Context,
        mirror: Mirror,
        shards: Shards,
        *,
        add_task: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
        recorder: Callable[[str], Recorder],
        executor: Callable[[Recorder], Executor],
    ) -> None:
        self.gates = context.gates
        self.settings = context.settings
        self.clock = context.clock
        self.api = context.api
        self._context = context
        self._mirror = mirror
        self._shards = shards
        self.add_task = add_task
        self.recorder = recorder
        self.executor = executor
        self._tables: dict[Resource, Table[Any]] = {}
        self._unwatched: dict[Resource, Table[Any]] = {}
        self._absences = AbsenceCheck(mirror, context.clock, self.requeue)
        add_task(self._absences.run)
        self._buffer: ReportBuffer[Any, Any] | None = None
        self._controller: Controller[Any] | None = None

    async def watch(self, watch: Watch[Any]) -> None:
        """Mirror the resource unless its gate is off."""
        if watch.gate and not self.gates.on(watch.gate):
            return
        known = watch.resource in self._mirror.resources
        namespace = getattr(self.settings, watch.private) if watch.private else ""
        self._tables[watch.resource] = self._mirror.add(
            watch.resource, watch.type, watch.all_indexes, namespace, named=watch.named, needs=self._needs(watch.pods)
        )
        if not watch.optional:
            self._mirror.must_be_there(watch.resource)
        elif not known:
            missing = not await is_installed(self.api, watch.resource)
            self._mirror.may_be_missing(watch.resource, now=missing)

    def _needs(self, pods: Pods | None) -> Needs | None:
        if pods is None:
            return None
        unserved = (kind for kind in pods.unserved if not self.settings.serves(kind.kind))
        return Needs(
            owners=tuple(token_of(kind) for kind in (*pods.owners, *unserved)),
            orphans=pods.orphans,
            sidecars=pods.sidecars,
            near=tuple(
                mirror_scope.Near(near.watch.resource, self.table(near.watch), near.namespaces) for near in pods.near
            ),
        )

    def watched(self, watch: Watch[Any]) -> bool:
        return watch.resource in self._tables and (not watch.optional or self._mirror.serves(watch.resource))

    def table(self, watch: Watch[T]) -> Table[T]:
        if watch.resource in self._tables:
            return self._tables[watch.resource]
        return self._unwatched.setdefault(watch.resource, Table[T](watch.all_indexes))

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        return await self.api.get(resource, namespace, name)

    async def read(self, resource: Resource, namespace: str, name: str) -> object:
        return await self._mirror.read(resource, namespace, name)

    async def newest(self, watch: Watch[T], namespace: str, name: str) -> T | None:
        try:
            message = await newest(self._context.bus, watch.resource, namespace, name)
        except BusError:
            return None
        if (
            message is None
            or subjects.names_only(message.headers)
            or message.headers.get(subjects.OP) == subjects.DELETED
        ):
            return None
        return ObjectDecoder(watch.resource, watch.type, Table[T]()).decode(message.data)

    async def read_named(self, resource: Resource, name: str) -> None:
        await self._mirror.read_owned(resource, name=name)

    def named(self, watch: Watch[Any], wanted: Callable[[], Collection[str]], changed: Callable[[str], None]) -> Named:
        return self._mirror.named(watch.resource, Reader(wanted, changed))

    def owns(self, namespace: str, name: str) -> bool:
        return self._shards.owns(namespace, name)

    def fence(self, namespace: str, name: str) -> Fence:
        return self._shards.fence(namespace, name)

    def requeue(self, namespace: str, name: str) -> None:
        if self._controller is None:
            raise RuntimeError("keys cannot be enqueued before a controller is attached")
        self._controller.enqueue(namespace, name)

    def enqueue_on(self, trigger: Trigger[Any]) -> None:
        """Enqueue the objects that the rule names, whenever a watched one changes."""
        watch, keys = trigger

        def on_change(old: Object | None, new: Object | None) -> None:
            for key in keys(old, new):
                self.requeue(*key)

        if watch.resource in self._tables:
            self.table(watch).listen(on_change)

    def enqueue_owners(self, watch: Watch[Any]) -> None:
        """Enqueue the owners of objects that change."""
        if (owner := watch.owner) is not None:
            self.enqueue_on(Trigger[Any](watch, partial(owner_keys, owner)))

    def enqueue_changed(self, watch: Watch[Any]) -> None:
        """Enqueue objects that change."""
        self.enqueue_on(Trigger[Any](watch, _own_key))

    def confirm_deleted(self, watch: Watch[Any], key: Key, uid: str, asker: Key) -> bool:
        return self._absences.confirm_deleted(watch.resource, key, uid, asker)

    def reported(self, obj: Object) -> Report | None:
        return None if self._buffer is None else self._buffer.latest(obj)

    def attach(self, controller: Controller[Any]) -> None:
        """Set the controller whose queue gets the keys of objects that change."""
        self._controller = controller

    def receive(self, primary: Watch[Any], reports: StatusReports[Any, Any]) -> None:
        """Buffer reports about the objects until they are written."""
        self._buffer = ReportBuffer(self, primary, reports)

    async def serve_reports(self, reports: StatusReports[Any, Any]) -> None:
        """Answer the reports."""
        if self._buffer is not None:
            await serve_reports(self._context.bus, reports.kind, reports.body, self._buffer.receive)

    async def answer(self, kind: str, body: type[M], handler: Handler[M], *, by_any_replica: bool = False) -> None:
        queue = self._context.service if by_any_replica else ""
        await serve_reports(self._context.bus, kind, body, handler, queue=queue)


def _own_key(old: Object | None, new: Object | None) -> list[Key]:
    return [obj.metadata.key for obj in (new or old,) if obj is not None]


def report_undecodable(found: Undecodable, recorder: Recorder, journal: Journal, shards: Shards) -> None:
    """Report a decoding error of an object, if this replica serves it: an event, a reason on the bus, a log line.

    Such an object is in no plan: it is ignored until it changes, and other objects are not affected. The decoder's
    message names the field: `… - at `$.spec.replicas``.
    """
    if not shards.owns(found.namespace, found.name):
        return
    subject = ObjectRef(found.resource, found.namespace, found.name, found.uid, found.version)
    text = f"nothing is done until it is changed: cannot read it: {found.error}"
    structlog.get_logger().warning(
        "undecodable object", object=subject.key, kind=found.resource.kind, error=found.error
    )
    recorder.record(subject, Event(UNDECODABLE, text, warning=True))
    journal.why(subject, Plan(reasons=(Reason(State.STUCK, UNDECODABLE, text),)), trace="")
