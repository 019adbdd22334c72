"""The real node agent as a simulated process."""

import dataclasses

from flotilla_common.health import Health
from flotilla_common.service import Context, Service
from flotilla_nodeagent import app
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.endpoints import Status
from tests.simulation.nodes.machine import Machine
from tests.simulation.nodes.runtime import SOCKET, SimulatedRuntime

NAME = "agent"
"""Agents are `agent-1`, `agent-2`, … as processes, on `node-1`, `node-2`, …"""


def agent_of(machine: Machine, *, probes: bool) -> Service:
    """Return the agent of one node, as a service that the simulation can run. `probes`: it has probes."""

    async def run(context: Context) -> None:
        status = _Status(context.health)
        context.started()
        await app.run(
            settings=dataclasses.replace(
                context.settings,
                node=machine.name,
                cri_socket=SOCKET,
                feature_gates=f"{context.settings.feature_gates},PodProbeMarkerGate={str(probes).lower()}".lstrip(","),
            ),
            bus=context.bus,
            clock=context.clock,
            entropy=context.entropy,
            status=status,
            runtimes=Runtimes(
                context.clock,
                lambda ok, why: status.ready("runtime", ok, why),
                override=SOCKET,
                connect=lambda _: SimulatedRuntime(machine),
            ),
            journal=machine.journal,
            results=machine.results,
        )

    return Service(NAME, run)


class _Status(Status):
    """The status on the agent's /readyz, by which its process is ready."""

    def __init__(self, health: Health) -> None:
        super().__init__()
        self._health = health

    def ready(self, name: str, ok: bool, why: str = "") -> None:
        super().ready(name, ok, why)
        self._health.ready(name, ok=ok, why=why)
