"""Numbers the points of a run, and injects faults at chosen points.

The injector is the network of every process (`wire`), listens to the bus, and is called before each step of the
scenario. The fault's kind decides what happens at the point; after that, the injector may hold watch events back for a
while.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import Context
from functools import partial
from typing import Protocol, TypeVar, cast

from flotilla_common.api.resources import LEASE, Resource
from flotilla_common.bus.interface import Message
from flotilla_common.bus.subjects import kube_marker
from flotilla_common.kube.interface import Unreachable
from flotilla_common.node.reports import FOLLOW
from tests.simulation.apiserver.store import Backup
from tests.simulation.apiserver.wire import Delivery, PlainWire, Request, Wire
from tests.simulation.bus.faults import UNDISTURBED, Hop, Treatment, Way
from tests.simulation.history import Version
from tests.simulation.loop import SimulatedClock, SimulatedLoop
from tests.simulation.nodes.agent import NAME as AGENTS
from tests.simulation.nodes.machine import PlainSocket
from tests.simulation.oracles.view import ours
from tests.simulation.perturbation.fault import Place, Point
from tests.simulation.world import USER, World

T = TypeVar("T")
OBJECTS, OBJECT_DOTS = "kube.v1.", 5
"""The prefix of subjects of objects, and the number of their dots; subjects of markers have fewer."""

LEASES = (
    "flotilla-cloneset",
    "flotilla-daemonset",
    "flotilla-jobs",
    "flotilla-sidecar",
    "flotilla-statefulset",
    "flotilla-topology",
    "-pods.core",
    "-others",
)
"""Leases whose renewals are points, by parts of their names: those of members behave like these."""


class Effect(Protocol):
    """The effect of a kind of fault at its point."""

    async def write(self, injector: "FaultInjector", request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        """Handle a write instead of the network."""
        ...

    def event(self, injector: "FaultInjector", request: Request) -> None:
        """Act before an event is delivered. Raises the error that ends the watch."""
        ...

    def moment(self, injector: "FaultInjector") -> None:
        """Act at a message or a step."""
        ...

    async def call(self, injector: "FaultInjector", agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        """Handle an agent's call instead of its runtime."""
        ...

    def report(self, injector: "FaultInjector", agent: str) -> Treatment:
        """Return the treatment of an agent's report."""
        ...


class FaultInjector:
    """The network of one run, and a listener on its bus. Without a fault it only records the points."""

    def __init__(self) -> None:
        self.injected: list[float] = []  # when, in fake seconds
        self.points: list[Point] = []
        self.stem: Callable[[Point], Effect | None] | None = None
        """Returns the effect at a point, instead of the armed faults."""
        self._targets: dict[tuple[Place, str, int], Effect] = {}
        self._world: World | None = None
        self._counts: Counter[tuple[Place, str]] = Counter()
        self._renewed: dict[tuple[str, str], float] = {}  # by process and lease: when the world had changed by then
        self._socket = PlainSocket()
        self._losing_replies: set[str] = set()
        self._after_marker: dict[str, Callable[[], None]] = {}  # by the marker's subject
        self._restoring: asyncio.TimerHandle | None = None
        self._queued: dict[str, float] = {}  # until when requests of a process are not carried out
        self._held: dict[tuple[str, str], float] = {}  # until when events stay back, by process and resource

    def arm(self, place: Place, writer: str, number: int, effect: Effect) -> None:
        """Inject the effect at this point."""
        self._targets[(place, writer, number)] = effect

    @property
    def world(self) -> World:
        """Return the world of the run, from `begin` on."""
        if self._world is None:
            raise RuntimeError("the run has not begun")
        return self._world

    def begin(self, world: World) -> None:
        """Begin to count points."""
        self._world = world
        world.bus.on_step = self._message
        if world.machines:
            world.bus.faults = self

    async def carry(self, agent: str, method: str, serve: Callable[[], Awaitable[T]]) -> T:
        """Carry a call between an agent and its runtime."""
        effect = self._reached(Place.CALL, agent, method) if self._world is not None else None
        return await (self._socket.carry(agent, method, serve) if effect is None else effect.call(self, agent, serve))

    def treatment(self, hop: Hop) -> Treatment:
        """Return the treatment of a message; only reports of agents and replies to them are disturbed."""
        if not hop.client.startswith(AGENTS):
            return UNDISTURBED
        if hop.way is Way.LIVE and hop.client in self._losing_replies and f".{hop.client}." in hop.subject:
            self._losing_replies.remove(hop.client)
            return Treatment(times=0)
        if hop.way is Way.ASK and f".{FOLLOW}." not in hop.subject:
            effect = self._reached(Place.REPORT, hop.client, hop.subject.split(".")[3])
            return UNDISTURBED if effect is None else effect.report(self, hop.client)
        return UNDISTURBED

    def lose_next_reply(self, agent: str) -> None:
        """Lose the next reply to this agent."""
        self._losing_replies.add(agent)

    def wire(self, writer: str) -> Wire:
        """Return the network between a writer and the apiserver."""
        clock = SimulatedClock(cast("SimulatedLoop", asyncio.get_running_loop()))
        return FaultyWire(self, PlainWire(clock), clock) if ours(writer) else PlainWire(clock)

    def step(self) -> None:
        """Count the scenario's next step, before it is played."""
        if effect := self._reached(Place.STEP, "", ""):
            effect.moment(self)

    def hold(self, writer: str, resource: str, seconds: float) -> None:
        """Hold back the watch events of a resource (of all, if it is empty) from a process."""
        self._held[(writer, resource)] = self.world.loop.time() + seconds

    def held(self, writer: str, resource: str) -> float:
        """Return until when events of the resource are held back from the process; 0 for not at all."""
        return max(self._held.get((writer, resource), 0.0), self._held.get((writer, ""), 0.0))

    def queue(self, writer: str, seconds: float) -> None:
        """Let requests of the process wait in the apiserver."""
        self._queued[writer] = self.world.loop.time() + seconds

    async def queued(self, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        """Execute the request when its turn comes, if its sender still waits for it."""
        if request.writer not in self._queued:
            return await serve()
        world = self.world
        while (rest := self._queued.get(request.writer, 0.0) - world.loop.time()) > 0:
            await world.clock.sleep(rest)
            if not world.processes[request.writer].waits_for(request):
                raise Unreachable("given up")
        return await serve()

    def restore_after(self, seconds: float) -> None:
        """Make a backup of etcd now, and restore it after this time.

        If the user acts meanwhile, the backup is made again: a user's actions are not lost.
        """
        self.world.history.listeners.append(lambda version: self._follow_user(version, seconds))
        self._back_up(seconds)

    def _follow_user(self, version: Version, seconds: float) -> None:
        if version.writer == USER and self._restoring is not None:
            self._restoring.cancel()
            self._back_up(seconds)

    def _back_up(self, seconds: float) -> None:
        backup, loop = self.world.server.store.backup(), self.world.loop
        self._restoring = loop.call_later(seconds, self._restore, backup, context=Context())

    def _restore(self, backup: Backup) -> None:
        self._restoring = None
        self.injected.append(self.world.loop.time())
        self.world.restore(backup)

    def writes(self, request: Request) -> Effect | None:
        """Count a write of ours. Returns the effect if this is the point."""
        if self._world is None or not request.writes:
            return None
        if request.resource == LEASE and not self._tells(request):
            return None
        return self._reached(Place.WRITE, request.writer, request.resource.plural)

    def _tells(self, request: Request) -> bool:
        """Report whether a renewal is a point: something has changed since the one before."""
        if not any(part in request.name for part in LEASES):
            return False
        lease, changed = (request.writer, request.name), self.world.changed
        before, self._renewed[lease] = self._renewed.get(lease), changed
        return before != changed

    def receives(self, request: Request) -> None:
        """Count a watch event that is about to reach a process of ours. Raises the error that ends the watch."""
        if self._world is None:
            return
        if effect := self._reached(Place.EVENT, request.writer, request.resource.plural):
            effect.event(self, request)

    def _message(self, _: int, message: Message) -> None:
        if not message.subject.startswith(OBJECTS) or message.subject.count(".") < OBJECT_DOTS:
            if (waiting := self._after_marker.pop(message.subject, None)) is not None:
                self._inject_soon(waiting)
            return  # why, act, or a marker
        if effect := self._reached(Place.MESSAGE, "", message.subject.split(".")[3]):
            self._inject_soon(partial(effect.moment, self))

    def after_marker(self, resource: Resource, call: Callable[[], None]) -> None:
        """Call a function when the bus has stored the next marker of the resource."""
        self._after_marker[kube_marker(resource)] = call

    def _inject_soon(self, call: Callable[[], None]) -> None:
        """Inject right after the server has stored its message."""
        self.world.loop.call_soon(call, context=Context())

    def _reached(self, place: Place, writer: str, resource: str) -> Effect | None:
        number = self._counts[(place, writer)]
        self._counts[(place, writer)] += 1
        point = Point(place, writer, number, resource)
        self.points.append(point)
        effect = self.stem(point) if self.stem else self._targets.get((place, writer, number))
        if effect is not None:
            self.injected.append(self.world.loop.time())
        return effect


class FaultyWire:
    """The network of one process."""

    def __init__(self, injector: FaultInjector, plain: PlainWire, clock: SimulatedClock) -> None:
        self._injector = injector
        self._plain = plain
        self._clock = clock

    async def carry(self, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        effect = self._injector.writes(request)
        if effect is not None:
            return await effect.write(self._injector, request, serve)
        return await self._plain.carry(request, lambda: self._injector.queued(request, serve))

    async def deliver(self, request: Request, delivery: Delivery) -> bool:
        if delivery.event.type != "BOOKMARK":
            self._injector.receives(request)
        while (rest := self._injector.held(request.writer, request.resource.plural) - self._clock.monotonic()) > 0:
            await self._clock.sleep(rest)
        return await self._plain.deliver(request, delivery)
