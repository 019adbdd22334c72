"""Plans outside the service: `flotilla replay` from a recording, `flotilla plan` from a model of the cluster.

The controller's own code gathers and plans; only the source of the tables differs. Where a service asks the apiserver,
the tables answer: objects that are not in them do not exist.
"""

from collections.abc import Callable, Collection, Coroutine, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.controller import failed_plan
from flotilla_common.control.controller_context import Named
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.plan import ObjectRef, Plan
from flotilla_common.control.report_buffer import ReportBuffer
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Trigger, Watch
from flotilla_common.control.writes import with_write_failures
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, Unreachable
from flotilla_common.mirror.feed import Followed
from flotilla_common.mirror.table import Indexer, Table
from flotilla_common.node.reports import Report
from flotilla_common.node.serving import Sender
from flotilla_common.settings import Settings

T = TypeVar("T", bound=Object)
Woken = Callable[[Key], None]
"""Receives each object that a change of a table would queue in the service."""

Follow = Callable[[Resource, str], Followed]
"""Returns what is known of the objects of one name, of a resource that is read by name only."""


class TableSource(Protocol):
    """Creates tables, and feeds them."""

    def add(self, resource: Resource, kind: type[T], indexes: Mapping[str, Indexer[T]]) -> Table[T]: ...


class Planning(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of plans besides objects: services report them in heartbeats, bundles keep them."""

    gates: str = ""  # gates that differ from the defaults, in the syntax of `--feature-gates`
    options: Json = {}  # the controller's settings that change decisions, by their own names


class Decision(msgspec.Struct, frozen=True):
    """A plan, and the object at the time of planning."""

    subject: ObjectRef
    plan: Plan


class ReplayController:
    """A controller that only plans, on tables from another source."""

    def __init__(
        self,
        spec: ControllerSpec[Any, Any],
        source: TableSource,
        planning: Planning,
        clock: Clock,
        follow: Follow | None = None,
        woken: Woken | None = None,
    ) -> None:
        gates = Gates.parse(planning.gates)
        context = _RecordedContext(spec, source, gates, clock, follow or _unrecorded)
        options = None if spec.options is None else msgspec.convert(planning.options, spec.options.type)
        self._spec = spec
        gatherer = spec.build(context, options)
        self._gather = gatherer.gather
        if woken is not None:
            for trigger in spec.triggers(gatherer):
                context.report(trigger, woken)
        self._buffer = context.buffer

    def decide(self, key: Key, memory: Memory, now: datetime) -> Decision | None:
        """Plan one object once, from the current tables; return None when it does not exist."""
        snapshot = self._gather(key, memory)
        if snapshot is None:
            return None
        try:
            return Decision(snapshot.subject, with_write_failures(self._spec.plan(snapshot, now), memory.refused))
        except Exception as error:  # noqa: BLE001 - as in the controller: the decision is that planning failed
            return Decision(snapshot.subject, failed_plan(error))

    def hear(self, sender: Sender, report: Json) -> None:
        """Record a node agent's report. Raises msgspec.ValidationError if it is malformed."""
        if self._buffer is not None and self._spec.reports is not None:
            self._buffer.replay(sender, msgspec.convert(report, self._spec.reports.body))


class _RecordedContext:
    """The context of a controller that only plans."""

    def __init__(
        self,
        spec: ControllerSpec[Any, Any],
        source: TableSource,
        gates: Gates,
        clock: Clock,
        follow: Follow,
    ) -> None:
        self.gates = gates
        self.settings = Settings()
        self.clock = clock
        self._follow = follow
        self._tables = {
            watch.resource: source.add(watch.resource, watch.type, watch.all_indexes)
            for watch in spec.all_watches
            if not watch.gate or gates.on(watch.gate)
        }
        reports = spec.reports
        self.buffer = None if reports is None else ReportBuffer(self, spec.primary, reports)

    def table(self, watch: Watch[T]) -> Table[T]:
        return self._tables[watch.resource] if watch.resource in self._tables else Table[T](watch.all_indexes)

    def watched(self, watch: Watch[Any]) -> bool:
        return watch.resource in self._tables

    def owns(self, namespace: str, name: str) -> bool:
        return True

    @property
    def api(self) -> Api:
        raise Unreachable("a recording has no apiserver", sent=False)

    async def read(self, resource: Resource, namespace: str, name: str) -> object:
        raise Unreachable("a recording has no apiserver", sent=False)

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        raise Unreachable("a recording has no apiserver", sent=False)

    def report(self, trigger: Trigger[Any], woken: Woken) -> None:
        """Pass woken objects to the caller, if it asked for them: it decides when to plan."""

        def on_change(old: Object | None, new: Object | None) -> None:
            for key in sorted(trigger.keys(old, new)):
                woken(key)

        self.table(trigger.watch).listen(on_change)

    def requeue(self, namespace: str, name: str) -> None:
        """Do nothing: the caller decides when to plan."""

    def named(self, watch: Watch[Any], wanted: Callable[[], Collection[str]], changed: Callable[[str], None]) -> Named:
        return _Named(watch.resource, self._follow)

    async def read_named(self, resource: Resource, name: str) -> None:
        raise Unreachable("a recording has no apiserver", sent=False)

    def confirm_deleted(self, watch: Watch[Any], key: Key, uid: str, asker: Key) -> bool:
        return self.table(watch).by_uid(uid) is None

    def reported(self, obj: Object) -> Report | None:
        return None if self.buffer is None else self.buffer.latest(obj)

    def add_task(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do nothing: no tasks run beside a replayed plan."""


class _Named:
    """A table of objects that are read by name."""

    def __init__(self, resource: Resource, follow: Follow) -> None:
        self._resource = resource
        self._follow = follow

    def follow(self, name: str) -> Followed:
        return self._follow(self._resource, name)


def _unrecorded(resource: Resource, name: str) -> Followed:
    """Report that the name is unknown: objects that are read by name are not on the bus, so not recorded."""
    return Followed(trouble="a recording does not hold it")
