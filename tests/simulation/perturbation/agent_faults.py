"""What faults do to the agents of nodes: to the processes, to their calls to the runtime, to their reports, and to the
deliveries that they live on."""

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
"""How late a report comes that is late."""


class CrashAgent(Crash):
    """A node agent dies when its runtime has done what it was asked for. It is started again soon."""

    async def call(self, injector: FaultInjector, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        if not self.before:
            await serve()
        self.end(injector, agent)
        return await asyncio.get_running_loop().create_future()  # the dead hear no answer


class CrashAgentBefore(CrashAgent):
    before = True


class LoseRuntime(NoEffect):
    """The runtime goes down with what it was asked for, and is there again a moment later."""

    async def call(self, injector: FaultInjector, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        await serve()
        raise Unavailable("simulated: connection lost")


class CrashReporting(Crash):
    """A node agent dies as its report leaves."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        injector.world.loop.call_soon(self.end, injector, agent, context=Context())
        return UNDISTURBED


class LoseReport(NoEffect):
    """Nobody hears a report."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        return Treatment(times=0)


class RepeatReport(NoEffect):
    """A report arrives twice."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        return Treatment(times=2)


class DelayReport(NoEffect):
    """A report arrives when its sender has long given up waiting for an answer."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        return Treatment(delay=LATE_SECONDS)


class LoseAnswer(NoEffect):
    """A report is taken, and its sender does not learn of it."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        injector.lose_next_reply(agent)
        return UNDISTURBED


class PauseAgent(NoEffect):
    """A node agent stands still (SIGSTOP) once its report has left."""

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        process = injector.world.processes[agent]
        process.pause()
        injector.world.loop.call_later(PAUSE_SECONDS, process.resume, context=Context())
        return UNDISTURBED


class LoseCopies(NoEffect):
    """For a moment nothing of what the bus sends to node agents arrives, though they listen: heartbeats and later
    numbers tell."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._usual: Callable[[Hop], Treatment] | None = None

    def treatment(self, hop: Hop) -> Treatment:
        """Of copies only: answers come."""
        if hop.way is Way.LIVE and hop.client.startswith(AGENT) and hop.subject.startswith("node.v1."):
            return Treatment(times=0)
        return UNDISTURBED if self._usual is None else self._usual(hop)

    def moment(self, injector: FaultInjector) -> None:
        bus, usual = injector.world.bus, injector.world.bus.faults
        self._usual = None if usual is None else usual.treatment
        bus.faults = self
        injector.world.loop.call_later(UNRULY_SECONDS, setattr, bus, "faults", usual)


class LoseWatcher(NoEffect):
    """The replica of the watcher that publishes a resource for the nodes is gone for good as a runtime hears from its
    agent; the other one takes over."""

    wiped = False

    async def call(self, injector: FaultInjector, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        del agent
        world = injector.world
        world.processes[publisher(world, self.fault.resource)].crash()
        if self.wiped:
            world.bus.wipe()
        return await serve()


class LoseWatcherAndBus(LoseWatcher):
    """And the bus has lost everything, deliveries and all."""

    wiped = True


def publisher(world: World, plural: str) -> str:
    """The replica of the watcher that publishes the resource, by the lease."""
    lease = lease_name(next(one for one in published() if one.plural == plural))
    document = world.server.store.table(LEASE).objects[(world.settings.namespace, f"flotilla-watcher-{lease}")].document
    return next(name for name in world.processes if document["spec"]["holderIdentity"].startswith(name))
