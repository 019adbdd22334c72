"""The faults of node agents: of their processes, their calls to the runtime, their reports and their deliveries."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

from flotilla_common.api.resources import LEASE
from flotilla_common.installed import published
from flotilla_nodeagent.cri.errors import Unavailable
from flotilla_watcher.app import lease_name
from tests.simulation.bus.faults import UNDISTURBED, Hop, Treatment, Way
from tests.simulation.nodes.agent import NAME as AGENT
from tests.simulation.perturbation.fault import Fault
from tests.simulation.perturbation.fault_injector import FaultInjector
from tests.simulation.perturbation.service_faults import PAUSE_SECONDS, UNRULY_SECONDS, Crash, NoEffect
from tests.simulation.world import World

T = TypeVar("T")

LATE_SECONDS = 12.0
"""Fake seconds by which a late report is delayed."""


class CrashAgent(Crash):
    """A crash of a node agent right after a call to its runtime took effect. It is restarted soon."""

    async def call(self, injector: FaultInjector, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        if not self.before:
            await serve()
        self.end(injector, agent)
        return await asyncio.get_running_loop().create_future()  # the dead hear no answer


class CrashAgentBefore(CrashAgent):
    before = True


class LoseRuntime(NoEffect):
    """A crash of the runtime during a call; it is restarted a moment later."""

    async def call(self, injector: FaultInjector, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        await serve()
        raise Unavailable("simulated: connection lost")


class CrashReporting(Crash):
    """A crash of a node agent as it sends a report."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        injector.world.loop.call_soon(self.end, injector, agent, context=Context())
        return UNDISTURBED


class LoseReport(NoEffect):
    """The loss of a report."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        return Treatment(times=0)


class RepeatReport(NoEffect):
    """A report that is delivered twice."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        return Treatment(times=2)


class DelayReport(NoEffect):
    """A report that arrives long after its sender's timeout."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        return Treatment(delay=LATE_SECONDS)


class LoseAnswer(NoEffect):
    """The loss of the reply to a report that took effect."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        injector.lose_next_reply(agent)
        return UNDISTURBED


class PauseAgent(NoEffect):
    """A pause of a node agent (SIGSTOP) after it sent a report."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        process = injector.world.processes[agent]
        process.pause()
        injector.world.loop.call_later(PAUSE_SECONDS, process.resume, context=Context())
        return UNDISTURBED


class LoseCopies(NoEffect):
    """The loss of all deliveries to node agents for a moment, while they listen.

    Heartbeats and later sequence numbers show the gap.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._usual: Callable[[Hop], Treatment] | None = None

    def treatment(self, hop: Hop) -> Treatment:
        """Drop deliveries only: replies arrive."""
        if hop.way is Way.LIVE and hop.client.startswith(AGENT) and hop.subject.startswith("node.v1."):
            return Treatment(times=0)
        return UNDISTURBED if self._usual is None else self._usual(hop)

    def moment(self, injector: FaultInjector) -> None:
        bus, usual = injector.world.bus, injector.world.bus.faults
        self._usual = None if usual is None else usual.treatment
        bus.faults = self
        injector.world.loop.call_later(UNRULY_SECONDS, setattr, bus, "faults", usual)


class LoseWatcher(NoEffect):
    """A crash, for good, of the watcher replica that publishes a resource for nodes, during an agent's runtime call.

    The other replica takes over.
    """

    wiped = False

    async def call(self, injector: FaultInjector, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        del agent
        world = injector.world
        world.processes[publisher(world, self.fault.resource)].crash()
        if self.wiped:
            world.bus.wipe()
        return await serve()


class LoseWatcherAndBus(LoseWatcher):
    """The same crash, with the loss of everything on the bus, deliveries included."""

    wiped = True


def publisher(world: World, plural: str) -> str:
    """Return the replica of the watcher that publishes the resource, by the lease."""
    lease = lease_name(next(one for one in published() if one.plural == plural))
    document = world.server.store.table(LEASE).objects[(world.settings.namespace, f"flotilla-watcher-{lease}")].document
    return next(name for name in world.processes if document["spec"]["holderIdentity"].startswith(name))
