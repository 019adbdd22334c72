"""Planning away from the service: how `flotilla replay` plans objects again from what was recorded, and `flotilla plan`
from a model of the cluster.

The controller's own code gathers and plans; only who feeds the tables differs. What a service finds out by asking the
apiserver is answered from the tables: what is not in them does not exist.
"""

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.controller import Key, Memory, failed_plan
from flotilla_common.control.inbox import Inbox
from flotilla_common.control.plan import Plan
from flotilla_common.control.refusals import with_refusals
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.subject import Subject
from flotilla_common.control.watches import Watch
from flotilla_common.control.wiring import Named
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, Unreachable
from flotilla_common.mirror.named import Followed
from flotilla_common.mirror.table import Indexer, Table
from flotilla_common.node.reports import Report
from flotilla_common.node.serving import Sender
from flotilla_common.settings import Settings

T = TypeVar("T", bound=Object)
Woken = Callable[[Key], None]
"""Called with an object that a change of a table has planned in the service."""

Follow = Callable[[Resource, str], Followed]
"""How far the objects of that name are known, of a resource that is read by name only."""


class TableSource(Protocol):
    """Makes tables, and feeds them."""

    def add(self, resource: Resource, kind: type[T], indexes: Mapping[str, Indexer[T]]) -> Table[T]: ...


class Planning(msgspec.Struct, frozen=True, kw_only=True):
    """What decides about plans besides objects: services say it in their heartbeats, bundles keep it."""

    gates: str = ""  # those that differ from the defaults, as `--feature-gates` reads them
    options: Json = {}  # the controller's settings that change decisions, by their own names


class Decision(msgspec.Struct, frozen=True):
    """A plan, and the object that it is for as it then was."""

    subject: Subject
    plan: Plan


class OfflineController:
    """A controller on tables that somebody else feeds."""

    def __init__(
        self,
        spec: ControllerSpec[Any],
        source: TableSource,
        planning: Planning,
        clock: Clock,
        follow: Follow | None = None,
        woken: Woken | None = None,
    ) -> None:
        gates = Gates.parse(planning.gates)
        wiring = _RecordedWiring(spec, source, gates, clock, follow or _unrecorded, woken)
        options = None if spec.options is None else msgspec.convert(planning.options, spec.options.type)
        self._spec = spec
        self._gather = spec.build(wiring, options).gather
        self._inbox = wiring.inbox

    def decide(self, key: Key, memory: Memory, now: datetime) -> Decision | None:
        """Plan one object once, from what the tables hold now; None when it does not exist."""
        snapshot = self._gather(key, memory)
        if snapshot is None:
            return None
        try:
            return Decision(snapshot.subject, with_refusals(self._spec.plan(snapshot, now), memory.refused))
        except Exception as error:  # noqa: BLE001 - as in the controller: the decision is that planning failed
            return Decision(snapshot.subject, failed_plan(error))

    def hear(self, sender: Sender, report: Json) -> None:
        """A node agent reported this. Raises msgspec.ValidationError for what is no report."""
        if self._inbox is not None and self._spec.reports is not None:
            self._inbox.replay(sender, msgspec.convert(report, self._spec.reports.body))


class _RecordedWiring:
    """The wiring of a controller that only plans."""

    def __init__(
        self,
        spec: ControllerSpec[Any],
        source: TableSource,
        gates: Gates,
        clock: Clock,
        follow: Follow,
        woken: Woken | None,
    ) -> None:
        self.gates = gates
        self.settings = Settings()
        self.clock = clock
        self._follow = follow
        self._woken = woken
        self._tables = {
            watch.resource: source.add(watch.resource, watch.type, watch.all_indexes)
            for watch in spec.all_watches
            if not watch.gate or gates.on(watch.gate)
        }
        reports = spec.reports
        self.inbox = None if reports is None else Inbox(self, spec.primary, reports)

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

    def wake(self, watch: Watch[T], keys: Callable[[T | None, T | None], Iterable[Key]]) -> None:
        """Name the objects to the caller, if it wants to know: it decides when to plan."""
        if (woken := self._woken) is not None:

            def on_change(old: T | None, new: T | None) -> None:
                for key in sorted(keys(old, new)):
                    woken(key)

            self.table(watch).listen(on_change)

    def again(self, namespace: str, name: str) -> None:
        """Likewise."""

    def named(self, watch: Watch[Any], wanted: Callable[[], Collection[str]], changed: Callable[[str], None]) -> Named:
        return _Named(watch.resource, self._follow)

    async def read_named(self, resource: Resource, name: str) -> None:
        raise Unreachable("a recording has no apiserver", sent=False)

    def surely_gone(self, watch: Watch[Any], key: Key, uid: str, asker: Key) -> bool:
        return self.table(watch).by_uid(uid) is None

    def reported(self, obj: Object) -> Report | None:
        return None if self.inbox is None else self.inbox.latest(obj)

    def beside(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Nothing runs beside a plan that is made again."""


class _Named:
    """A table of chosen names."""

    def __init__(self, resource: Resource, follow: Follow) -> None:
        self._resource = resource
        self._follow = follow

    def follow(self, name: str) -> Followed:
        return self._follow(self._resource, name)


def _unrecorded(resource: Resource, name: str) -> Followed:
    """What is read by name never goes over the bus, so it is in no recording."""
    return Followed(trouble="a recording does not hold it")
