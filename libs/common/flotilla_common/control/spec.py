"""Declarations of controllers: what they watch, write and answer, and how they gather and plan.

Everything else is derived from these values: the tables of a service and the events that wake its controllers
(`service_runner`), the RBAC of its ServiceAccount, its bus permissions, the resources that the watcher publishes, what
the simulator follows, and planning outside the service (`flotilla bundle`, `flotilla replay`). A controller's spec is
next to its plan; a service lists its specs, and nothing else.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import EVENT, LEASE, Resource
from flotilla_common.control.controller import Planner, Snapshot
from flotilla_common.control.controller_context import ControllerContext, ResponderContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.report_buffer import StatusReports
from flotilla_common.control.watches import AccessRule, Trigger, Watch
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings

S = TypeVar("S", bound=Snapshot)
SnapshotT_co = TypeVar("SnapshotT_co", bound=Snapshot, covariant=True)

Off = Callable[[Settings, Gates], str]
"""Returns why a part does not run with these settings (install.md §6); empty when it runs."""


class Gatherer(Protocol[SnapshotT_co]):
    """A builder of snapshots from tables."""

    def gather(self, key: Key, memory: Memory) -> SnapshotT_co | None:
        """Return the object and its surroundings; None when there is nothing to plan."""
        ...


G = TypeVar("G", bound=Gatherer[Any])


def no_triggers(gatherer: object) -> Sequence[Trigger[Any]]:
    """Return no rules."""
    return ()


class Options(msgspec.Struct, frozen=True):
    """The settings that affect plans: the type of their struct, also for reading recordings, and its constructor."""

    type: type[msgspec.Struct]
    of: Callable[[Settings, str], msgspec.Struct]
    """Creates the options from the settings and the apiserver's gitVersion."""


class ControllerSpec(msgspec.Struct, Generic[S, G], frozen=True, kw_only=True):
    """The declaration of one controller."""

    name: str
    """The name in events and metrics (install.md §10)."""
    primary: Watch[Any]
    """The objects that it plans."""
    wakes_itself: bool = True
    """Plan an object when it changes; if False, only the wake rules of `build` apply."""
    watches: tuple[Watch[Any], ...] = ()
    """The other objects that it reads."""
    access: tuple[AccessRule, ...] = ()
    reports: StatusReports[Any, Any] | None = None
    workers: int | Callable[[Settings], int] = 0
    """Number of workers; 0: as the kind's flag sets it."""
    idle_first: bool = False
    """Start idle objects before those in progress, all at once; see `priority`."""
    off: Off | None = None
    """Returns why it is off. None: it runs if custom-resource-enable permits the kind, and its gates are on."""
    options: Options | None = None
    build: Callable[[ControllerContext, Any], G]
    """Creates the gatherer from the context and the options (None without)."""
    triggers: Callable[[G], Sequence[Trigger[Any]]] = no_triggers
    """Rules that enqueue keys, besides changes of the objects and of what they own, given the gatherer."""
    keys: Callable[[G], list[Key]] | None = None
    """Returns all keys to plan, given the gatherer; None: those of the primary table."""
    plan: Planner[S]
    also_read: Callable[[ControllerContext, Key], Awaitable[object]] | None = None
    """Reads more after a write of unknown outcome, besides the object and the `consistent` watches."""

    @property
    def resource(self) -> Resource:
        """The kind that it plans."""
        return self.primary.resource

    @property
    def all_watches(self) -> tuple[Watch[Any], ...]:
        """The primary watch and the others."""
        return (self.primary, *self.watches)

    @property
    def answers(self) -> tuple[str, ...]:
        """The kinds of reports that it answers."""
        return () if self.reports is None else (self.reports.kind,)

    def why_off(self, settings: Settings, gates: Gates) -> str:
        """Return why it does not run with these settings; empty when it runs."""
        return (self.off or served(self.resource))(settings, gates)

    def workers_of(self, settings: Settings) -> int:
        """Return the number of workers with these settings."""
        workers = self.workers if isinstance(self.workers, int) else self.workers(settings)
        return workers or settings.workers_of(catalogue.kind_of(self.resource))


class Responder(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a service that does not plan: it answers requests of node agents."""

    name: str
    watches: tuple[Watch[Any], ...] = ()
    access: tuple[AccessRule, ...] = ()
    answers: tuple[str, ...]
    """The kinds of requests."""
    off: Off
    build: Callable[[ResponderContext], Awaitable[None]]

    @property
    def all_watches(self) -> tuple[Watch[Any], ...]:
        """The watches that it reads."""
        return self.watches

    def why_off(self, settings: Settings, gates: Gates) -> str:
        """Return why it does not run with these settings; empty when it runs."""
        return self.off(settings, gates)


Component = ControllerSpec[Any, Any] | Responder
"""A part of a service."""


def served(resource: Resource) -> Off:
    """Return an `Off` for parts that run if custom-resource-enable names the kind or is empty, and its gates are on."""

    def off(settings: Settings, gates: Gates) -> str:
        if not settings.serves(resource.kind):
            return f"off: {resource.kind} is not in CUSTOM_RESOURCE_ENABLE"
        closed = catalogue.kind_of(resource).closed(gates)
        return f"off: gate {closed[0]}" if closed else ""

    return off


READ = ("get", "list", "watch")

OWN_NAMESPACE = "namespace"
"""The setting that names Flotilla's own namespace."""

LEASES = AccessRule(LEASE, ("create", "delete", "get", "list", "update"), namespace=OWN_NAMESPACE)
"""Access of services that share work among replicas."""

EVENTS = AccessRule(EVENT, ("create", "patch"))


def access_of(components: Iterable[Component]) -> list[AccessRule]:
    """Return the access that the components need, events and leases included; empty without components."""
    found = [access for component in components for access in _of_component(component)]
    return [*found, EVENTS, LEASES] if found else []


def read_rules(resources: Iterable[Resource]) -> tuple[AccessRule, ...]:
    """Return the access for LIST and WATCH of all objects of these resources."""
    return tuple(AccessRule(resource, READ) for resource in resources)


def _of_component(component: Component) -> Iterable[AccessRule]:
    yield from component.access
    for watch in component.all_watches:
        yield AccessRule(watch.resource, (*READ, *watch.writes), namespace=watch.private)
        yield from (AccessRule(watch.resource, ("patch",), subresource=name) for name in watch.subresources)
    made = [watch.owner for watch in component.all_watches if "create" in watch.writes]
    if isinstance(component, ControllerSpec) and component.resource in made:
        # Creating objects with blockOwnerDeletion takes the right to set finalizers of their owner.
        yield AccessRule(component.resource, ("update",), subresource="finalizers")
