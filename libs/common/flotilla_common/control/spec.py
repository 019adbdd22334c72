"""What a controller declares: what it watches, writes and answers, and how it gathers and plans.

Everything else is made from these values: the tables of a service and what wakes its controllers (`assembly`), the
rights of its ServiceAccount, its permissions on the bus, the resources that the watcher publishes, what the simulator
follows, and planning away from the service (`flotilla bundle`, `flotilla replay`). A controller's spec stands beside
its plan; a service lists its specs, and that is all its wiring.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource
from flotilla_common.control.controller import Key, Memory, Planner, Snapshot
from flotilla_common.control.inbox import StatusReports
from flotilla_common.control.watches import Access, Watch
from flotilla_common.control.wiring import Answering, Wiring
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings

S = TypeVar("S", bound=Snapshot)
SnapshotT_co = TypeVar("SnapshotT_co", bound=Snapshot, covariant=True)

Off = Callable[[Settings, Gates], str]
"""Why a part does not run with these settings (install.md §6); empty when it runs."""


class Gatherer(Protocol[SnapshotT_co]):
    """Builds snapshots from tables."""

    def gather(self, key: Key, memory: Memory) -> SnapshotT_co | None:
        """The object and its surroundings; None when there is nothing to plan."""
        ...


class Options(msgspec.Struct, frozen=True):
    """How the settings that decide about plans become a struct, and how that is read from a recording."""

    type: type[msgspec.Struct]
    of: Callable[[Settings, str], msgspec.Struct]
    """Given the settings and the apiserver's gitVersion."""


class ControllerSpec(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """One controller."""

    name: str
    """In events and metrics (install.md §10)."""
    primary: Watch[Any]
    """The objects that it plans."""
    wakes_itself: bool = True
    """A change of an object has it planned; else only what `build` says does."""
    watches: tuple[Watch[Any], ...] = ()
    """What else it reads."""
    access: tuple[Access, ...] = ()
    reports: StatusReports[Any, Any] | None = None
    workers: int | Callable[[Settings], int] = 0
    """How many objects are planned side by side; 0: as the kind's flag says."""
    idle_first: bool = False
    """Objects that nothing was done for lately go before those in progress, all at once; see `priority`."""
    off: Off | None = None
    """None: it runs if custom-resource-enable names the kind, or nothing, and the kind's gates are on."""
    options: Options | None = None
    build: Callable[[Wiring, Any], Gatherer[S]]
    """Makes the gatherer, given the options (None without)."""
    keys: Callable[[Any], list[Key]] | None = None
    """All objects that there are to plan, given the gatherer; None: those of the primary table."""
    plan: Planner[S]
    also_read: Callable[[Wiring, Key], Awaitable[object]] | None = None
    """What to read after a write of unknown outcome besides the object and what is watched `consistent`."""

    @property
    def resource(self) -> Resource:
        """The kind that it plans."""
        return self.primary.resource

    @property
    def all_watches(self) -> tuple[Watch[Any], ...]:
        """The primary one and the others."""
        return (self.primary, *self.watches)

    @property
    def answers(self) -> tuple[str, ...]:
        """Kinds of reports that it answers."""
        return () if self.reports is None else (self.reports.kind,)

    def why_off(self, settings: Settings, gates: Gates) -> str:
        """Why it does not run with these settings; empty when it runs."""
        return (self.off or served(self.resource))(settings, gates)

    def workers_of(self, settings: Settings) -> int:
        """How many objects are planned side by side with these settings."""
        workers = self.workers if isinstance(self.workers, int) else self.workers(settings)
        return workers or settings.workers_of(catalogue.kind_of(self.resource))


class Responder(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a service that plans nothing: it answers requests of node agents."""

    name: str
    watches: tuple[Watch[Any], ...] = ()
    access: tuple[Access, ...] = ()
    answers: tuple[str, ...]
    """Kinds of requests."""
    off: Off
    build: Callable[[Answering], Awaitable[None]]

    @property
    def all_watches(self) -> tuple[Watch[Any], ...]:
        """What it reads."""
        return self.watches

    def why_off(self, settings: Settings, gates: Gates) -> str:
        """Why it does not run with these settings; empty when it runs."""
        return self.off(settings, gates)


Part = ControllerSpec[Any] | Responder
"""What a service is made of."""


def served(resource: Resource) -> Off:
    """Off unless custom-resource-enable names the kind, or nothing, and the kind's gates are on."""

    def off(settings: Settings, gates: Gates) -> str:
        if not settings.serves(resource.kind):
            return f"off: {resource.kind} is not in CUSTOM_RESOURCE_ENABLE"
        closed = catalogue.kind_of(resource).closed(gates)
        return f"off: gate {closed[0]}" if closed else ""

    return off
