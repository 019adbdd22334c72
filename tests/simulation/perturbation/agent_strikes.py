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
from tests.simulation.bus.faults import FINE, Fate, Passage, Way
from tests.simulation.nodes.agent import NAME as AGENT
from tests.simulation.perturbation.fault import Fault
from tests.simulation.perturbation.saboteur import Saboteur
from tests.simulation.perturbation.strikes import PAUSE_SECONDS, UNRULY_SECONDS, Crash, Passive
from tests.simulation.world import World

T = TypeVar("T")

LATE_SECONDS = 12.0
"""How late a report comes that is late."""


class CrashAgent(Crash):
    """A node agent dies when its runtime has done what it was asked for. It is started again soon."""

    async def call(self, saboteur: Saboteur, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        if not self.before:
            await serve()
        self.end(saboteur, agent)
        return await asyncio.get_running_loop().create_future()  # the dead hear no answer


class CrashAgentBefore(CrashAgent):
    before = True


class LoseRuntime(Passive):
    """The runtime goes down with what it was asked for, and is there again a moment later."""

    async def call(self, saboteur: Saboteur, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        await serve()
        raise Unavailable("simulated: connection lost")


class CrashReporting(Crash):
    """A node agent dies as its report leaves."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        saboteur.world.loop.call_soon(self.end, saboteur, agent, context=Context())
        return FINE


class LoseReport(Passive):
    """Nobody hears a report."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        return Fate(times=0)


class RepeatReport(Passive):
    """A report arrives twice."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        return Fate(times=2)


class DelayReport(Passive):
    """A report arrives when its sender has long given up waiting for an answer."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        return Fate(delay=LATE_SECONDS)


class LoseAnswer(Passive):
    """A report is taken, and its sender does not learn of it."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        saboteur.deafen(agent)
        return FINE


class PauseAgent(Passive):
    """A node agent stands still (SIGSTOP) once its report has left."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        process = saboteur.world.processes[agent]
        process.pause()
        saboteur.world.loop.call_later(PAUSE_SECONDS, process.resume, context=Context())
        return FINE


class LoseCopies(Passive):
    """For a moment nothing of what the bus sends to node agents arrives, though they listen: heartbeats and later
    numbers tell."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._usual: Callable[[Passage], Fate] | None = None

    def fate(self, passage: Passage) -> Fate:
        """Of copies only: answers come."""
        if passage.way is Way.LIVE and passage.client.startswith(AGENT) and passage.subject.startswith("node.v1."):
            return Fate(times=0)
        return FINE if self._usual is None else self._usual(passage)

    def moment(self, saboteur: Saboteur) -> None:
        bus, usual = saboteur.world.bus, saboteur.world.bus.faults
        self._usual = None if usual is None else usual.fate
        bus.faults = self
        saboteur.world.loop.call_later(UNRULY_SECONDS, setattr, bus, "faults", usual)


class LoseWatcher(Passive):
    """The replica of the watcher that publishes a resource for the nodes is gone for good as a runtime hears from its
    agent; the other one takes over."""

    wiped = False

    async def call(self, saboteur: Saboteur, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        del agent
        world = saboteur.world
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
