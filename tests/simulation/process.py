"""A simulated process: a real service with an apiserver client, a bus connection and a clock of its own.

It can crash (nothing more leaves it, not even from its `finally` blocks), be stopped, be paused and resumed, and be
started again as a fresh incarnation.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context as Variables
from typing import Protocol, TypeVar

from flotilla_common.health import Health
from flotilla_common.kube.client import REQUEST_SECONDS
from flotilla_common.kube.interface import Api, Unreachable
from flotilla_common.service import Context, Service, run_one
from flotilla_common.settings import Settings
from tests.simulation.apiserver.wire import Delivery, Request, Wire
from tests.simulation.bus.client import SimulatedBus
from tests.simulation.bus.server import Server
from tests.simulation.loop import Domain, SeededEntropy, SimulatedClock, SimulatedLoop, State

T = TypeVar("T")

GRACE_SECONDS = 30.0
"""The grace period of a pod's termination in Kubernetes."""


class Host(Protocol):
    """The host of processes."""

    @property
    def loop(self) -> SimulatedLoop: ...

    @property
    def bus(self) -> Server: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def seed(self) -> int: ...

    def client(self, writer: str, wire: Wire) -> Api:
        """Return an apiserver client behind a wire."""
        ...

    def wire(self, writer: str) -> Wire:
        """Return the network between that writer and the apiserver."""
        ...

    def failed(self, process: "Process", error: BaseException | None) -> None:
        """Handle a service that ended without having been stopped."""
        ...


class Process:
    """One replica of a service. `name` is its name as a writer; each incarnation has an identity of its own."""

    def __init__(
        self, host: Host, name: str, service: Service, *, skew: float = 0.0, inbox_prefix: str = "_INBOX"
    ) -> None:
        self.name = name
        self.skew = skew
        self.incarnation = 0
        self.alive = False
        self._host = host
        self._service = service
        self._inbox_prefix = inbox_prefix
        self._domain = Domain(name)
        self._variables = self._domain.context()
        self._wire: ProcessWire | None = None
        self._bus: SimulatedBus | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._paused_at = 0.0
        self.health = Health()

    @property
    def identity(self) -> str:
        """The name of this incarnation, as in its leases."""
        return f"{self.name}-{self.incarnation}"

    @property
    def paused(self) -> bool:
        """Stands still."""
        return self._domain.state is State.PAUSED

    @property
    def ready(self) -> bool:
        """As /readyz would say."""
        return not self.health.waiting

    @property
    def bus(self) -> SimulatedBus:
        """The bus connection of the current incarnation."""
        if self._bus is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._bus

    def waits_for(self, request: Request) -> bool:
        """Report whether the process lives, and still waits for the request."""
        return self.alive and self._wire is not None and request in self._wire.unanswered

    def start(self) -> None:
        """Begin a fresh incarnation."""
        if self.alive:
            raise RuntimeError(f"{self.name} runs already")
        self.incarnation += 1
        self.alive, self._stopping = True, False
        self._domain = Domain(self.identity)
        self._variables = self._domain.context()
        self._task = self._host.loop.create_task(self._main(self._context()), context=self._variables)
        self._task.add_done_callback(self._ended, context=Variables())

    def crash(self) -> None:
        """kill -9, now. A request that has left arrives all the same."""
        self.alive = False
        self._domain.state = State.DEAD
        self.bus.sever()

    async def stop(self) -> None:
        """SIGTERM, and kill -9 when the grace period is over."""
        task = self._task
        if task is None or not self.alive:
            return
        self._stopping = True
        task.cancel()
        await asyncio.wait([task], timeout=GRACE_SECONDS)
        if not task.done():
            self.crash()

    def pause(self) -> None:
        """SIGSTOP."""
        if self.alive and not self.paused:
            self._paused_at = self._host.loop.time()
            self._domain.state = State.PAUSED

    def resume(self) -> None:
        """SIGCONT."""
        if self.paused:
            loop = self._host.loop
            loop.call_soon(self.bus.slept, loop.time() - self._paused_at, context=self._variables)
            loop.resume(self._domain)

    def _context(self) -> Context:
        """Return the context that `run_services` would give the service, with simulated interfaces."""
        host, identity = self._host, self.identity
        entropy = SeededEntropy(f"{host.seed} {identity}")
        origin = entropy.uniform(1e3, 1e6)  # monotonic clocks of different processes have nothing in common
        clock = SimulatedClock(host.loop, skew=self.skew, origin=origin)
        self.health = Health()
        self.health.ready(self._service.name, ok=False, why="starting")
        self._bus = SimulatedBus(
            host.loop, host.bus, self.name, clock, self._variables, inbox_prefix=self._inbox_prefix
        )
        self._wire = ProcessWire(host.wire(self.name), host.loop, self._domain)
        return Context(
            service=self._service.name,
            settings=host.settings,
            gates=host.settings.gates(),
            api=host.client(self.name, self._wire),
            bus=self._bus,
            clock=clock,
            entropy=entropy,
            health=self.health,
            replica=identity,
        )

    async def _main(self, context: Context) -> None:
        try:
            await run_one(self._service, context)
        finally:
            await context.bus.close()
            await context.api.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task is not self._task or not self.alive:
            return
        self.alive = False
        error = None if task.cancelled() else task.exception()
        if not self._stopping or error is not None:
            self._host.failed(self, error)


class ProcessWire:
    """Carries a process's requests outside of it: one that has left arrives although its sender dies or sleeps."""

    def __init__(self, wire: Wire, loop: SimulatedLoop, domain: Domain) -> None:
        self._wire = wire
        self._loop = loop
        self._domain = domain
        self._outside = Variables()
        self.unanswered: set[Request] = set()
        """Requests whose senders still wait for the reply."""

    async def carry(self, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        """As the real client, whose patience has an end."""
        reply: asyncio.Future[T] = self._loop.create_future()
        if not self._domain.dead:
            self._loop.create_task(self._travel(request, serve, reply), context=self._outside)
        late = Unreachable(f"{request.verb} {request.resource.plural}: timed out")
        patience = self._loop.call_later(REQUEST_SECONDS, _refuse, reply, late)
        self.unanswered.add(request)
        try:
            return await reply
        finally:
            self.unanswered.discard(request)
            patience.cancel()

    async def deliver(self, request: Request, delivery: Delivery) -> bool:
        return await self._wire.deliver(request, delivery)

    async def _travel(self, request: Request, serve: Callable[[], Awaitable[T]], reply: asyncio.Future[T]) -> None:
        try:
            result = await self._wire.carry(request, serve)
        except Exception as error:  # noqa: BLE001 - whatever the wire or the server raises is the sender's answer
            _refuse(reply, error)
        else:
            if not reply.done():
                reply.set_result(result)


def _refuse(reply: asyncio.Future[T], error: Exception) -> None:
    """Fail a reply. A sender that was cancelled or killed does not read it."""
    if not reply.done():
        reply.set_exception(error)
        reply.exception()
