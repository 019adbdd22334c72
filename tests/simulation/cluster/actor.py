"""The control loop of the simulated cluster: see a change, wait a little, look again, write.

An actor is level-triggered. For each object it computes the next action from the stored state, and executes it when its
time has come, unless the object has changed so that another action is due. It sees changes at once; durations slow it
down.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.simulation.apiserver.client import SimulatedApi
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.history import Version
from tests.simulation.restored_copies import RESTORED_NAMESPACE

RETRY_SECONDS = 0.1
"""Fake seconds after which an actor retries a failed write."""


class Action(msgspec.Struct, frozen=True):
    """The next thing to do about one object."""

    name: str
    delay: float  # fake seconds
    act: Callable[[], Awaitable[object]]


class Actor:
    """One writer of the cluster, at work on the objects of one resource."""

    def __init__(self, server: ApiServer, writer: str, resource: Resource, wire: Wire | None = None) -> None:
        self.server = server
        self.clock = server.clock
        self.api = SimulatedApi(server, writer, wire)
        self.resource = resource
        self._loop = asyncio.get_running_loop()
        self._due: dict[ObjectKey, tuple[str, asyncio.TimerHandle]] = {}
        self._working: dict[ObjectKey, asyncio.Task[None]] = {}

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        """Return the next action for the stored object; None for none, until it changes."""
        raise NotImplementedError

    @property
    def busy(self) -> bool:
        """Something is under way or due."""
        return bool(self._due or self._working)

    def stored(self, place: ObjectKey, resource: Resource | None = None) -> Json | None:
        """Return an object as it is stored now."""
        found = self.server.store.table(resource or self.resource).objects.get(place)
        return found.document if found else None

    def all(self, resource: Resource | None = None) -> Iterable[tuple[ObjectKey, Json]]:
        """All stored objects of a resource, in order. Strangers stay as they were made."""
        table = self.server.store.table(resource or self.resource)
        found = ((place, stored.document) for place, stored in table.in_order())
        return [(place, document) for place, document in found if place[0] != RESTORED_NAMESPACE]

    def see(self, version: Version) -> None:
        """Handle a change of an object."""
        self.touch((version.namespace, version.name))

    def touch_all(self) -> None:
        """Something changed that may matter for every object."""
        for place, _ in self.all():
            self.touch(place)

    def touch(self, place: ObjectKey) -> None:
        """Look at the object again."""
        if place in self._working:
            return  # it is looked at when that is done
        document = self.stored(place)
        step = self.next_step(place, document) if document is not None else None
        due = self._due.get(place)
        if due is not None:
            if step is not None and step.name == due[0]:
                return
            due[1].cancel()
            del self._due[place]
        if step is not None:
            self._plan(place, step.name, step.delay)

    def _plan(self, place: ObjectKey, name: str, delay: float) -> None:
        """Nothing that belongs to a process may be inherited: what kills it must not stop the cluster."""
        self._due[place] = name, self._loop.call_later(delay, self._start, place, context=Context())

    def _start(self, place: ObjectKey) -> None:
        del self._due[place]
        document = self.stored(place)
        step = self.next_step(place, document) if document is not None else None
        if step is not None:
            self._working[place] = self._loop.create_task(self._work(place, step), context=Context())

    async def _work(self, place: ObjectKey, step: Action) -> None:
        failed = False
        try:
            await step.act()
        except (ApiError, Unreachable):
            failed = True
        del self._working[place]
        if failed:
            self._plan(place, "retry", RETRY_SECONDS)
        else:
            self.touch(place)
