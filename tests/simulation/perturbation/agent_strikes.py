"""What faults do to the agents of nodes: to the processes, to their calls to the runtime, and to their reports."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

from flotilla_nodeagent.cri.errors import Unavailable
from tests.simulation.bus.faults import FINE, Fate
from tests.simulation.perturbation.saboteur import Saboteur
from tests.simulation.perturbation.strikes import PAUSE_SECONDS, Crash, Passive

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
