"""Starts the node agents of real nodes: each runs inside its node, with its own credentials for the bus."""

import sys
from pathlib import Path

from flotilla_cli.bus_server import BusUsers
from flotilla_cli.local import ClusterError, write_private
from flotilla_cli.output import Say
from flotilla_common.clock import Clock
from flotilla_dev.cluster.probes import not_ready
from flotilla_dev.cluster.processes import Processes, end_of
from flotilla_dev.cluster.realnodes.nodes import RealNodes, node_name, part_name

PART = "agent"
PORT = 10221
READY_WITHIN = 60.0  # seconds; it takes two
POLL = 0.2


class Agents:
    """The agents of a cluster, one per real node."""

    def __init__(self, state_dir: Path, nodes: RealNodes, count: int, clock: Clock) -> None:
        self._state_dir = state_dir
        self._nodes = nodes
        self._names = [node_name(index) for index in range(count)]
        self._clock = clock
        self._processes = Processes(state_dir)

    def enrol(self) -> None:
        """Make missing credentials. Call this before the bus starts, because it reads its users then."""
        users = BusUsers(self._state_dir)
        for name in self._names:
            if not self._credentials(name).exists() or name not in users.nodes():
                write_private(self._credentials(name), users.add_node(name, self._clock))

    async def start(self, nats: str, say: Say) -> None:
        """Start the agents that do not run, and wait until all of them are ready."""
        for name in self._names:
            self._ensure(name, nats)
        deadline = self._clock.monotonic() + READY_WITHIN
        for index, name in enumerate(self._names):
            while trouble := await not_ready(self._nodes.network.node(index), PORT):
                if self._clock.monotonic() > deadline:
                    end = end_of(self._processes.log(part_name(name, PART)))
                    raise ClusterError(f"The agent of {name} is not ready: {trouble}. {end}")
                say(f"waiting for {name}")
                await self._clock.sleep(POLL)

    def _ensure(self, name: str, nats: str) -> None:
        argv = [
            *(sys.executable, "-m", "flotilla_nodeagent"),
            f"--node={name}",
            f"--nats={nats}",
            f"--creds={self._credentials(name)}",
            f"--node-state-dir={self._state_dir / 'nodes' / name / PART}",
            f"--health-port={PORT}",
            f"--metrics-port={PORT}",
        ]
        if not self._processes.alive(part_name(name, PART)):
            self._processes.spawn(part_name(name, PART), self._nodes.inside(name, argv))

    def _credentials(self, name: str) -> Path:
        return self._state_dir / "nodes" / name / "bus.creds"
