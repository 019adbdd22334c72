"""Node agents on real nodes: each among its node's files, network and processes, with credentials of its own.

async with agents(cluster, fleet) as on:
    on.kill("real-0")
    await on.start("real-0")
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from flotilla_cli.local import Process
from flotilla_cli.nats_config import BusUsers
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.nats import reload_users
from tests.support import set_clock
from tests.support.cluster import eventually
from tests.support.fleet import Fleet
from tests.support.nodes import RealCluster

PORT = 10221
PROGRAM = ("-m", "flotilla_cli", "run", "nodeagent")
"""Arguments of the Python interpreter."""


class Agents:
    """The agents of one cluster."""

    def __init__(self, cluster: RealCluster, fleet: Fleet, flags: Iterable[str]) -> None:
        self._cluster = cluster
        self._fleet = fleet
        self._flags = list(flags)
        self._folder = cluster.plane.places.state_dir
        self._users = BusUsers(self._folder)

    def enrol(self) -> None:
        """Create the nodes' credentials, and reload the running bus."""
        for node in self._cluster.names:
            self._file(node).write_text(self._users.add_node(node, SystemClock()))
        reload_users(self._fleet.nats.process)

    async def start(
        self, node: str, *, wait: bool = True, flags: Iterable[str] = (), program: Sequence[str] = PROGRAM
    ) -> Process:
        """Start the agent of a node, and wait until it is ready."""
        argv = [
            sys.executable, *program,
            f"--node={node}",
            f"--nats={self._fleet.nats.url}",
            f"--creds={self._file(node)}",
            f"--node-state-dir={self._folder / 'agents' / node}",
            f"--health-port={PORT}",
            "--metrics-port=0",
            *self._flags,
            *flags,
        ]  # fmt: skip
        env = {"PYTHONPATH": str(Path(__file__).parents[2])}
        command = self._cluster.nodes.inside(node, argv)
        process = self._cluster.plane.processes.spawn(_name(node), command, self.log_file(node), bound=True, env=env)
        if wait:
            await self.ready(node)
        return process

    @asynccontextmanager
    async def wrong_clock(self, node: str) -> AsyncGenerator[Callable[[float], None]]:
        """Run the node's agent for the time of the block with a clock that is off by the seconds passed in."""
        file = self._folder / f"{node}.clock"
        await self.kill(node)
        await self.start(node, program=set_clock.command(file, "flotilla_nodeagent"))
        try:
            yield partial(set_clock.put, file)
        finally:
            await self.kill(node)
            await self.start(node)

    async def ready(self, node: str, seconds: float = 90) -> None:
        """Wait for /readyz; on failure report what the agent waits for and what it logged."""
        try:
            await eventually(lambda: "[-]" not in (page := self.page(node, "readyz")) and bool(page), seconds)
        except TimeoutError:
            log = self.log(node)[-3000:]
            raise AssertionError(f"the agent of {node}: {self.page(node, 'readyz')}\n{log}") from None

    async def kill(self, node: str) -> None:
        """kill -9."""
        await self._cluster.plane.processes.stop([_name(node)], SystemClock(), grace=0)

    def page(self, node: str, path: str) -> str:
        """Return a page of the agent; empty if the agent does not answer."""
        return self._cluster.run_in(node, "curl", "-s", "-m", "3", f"http://127.0.0.1:{PORT}/{path}", check=False)

    def metric(self, node: str, name: str) -> float:
        """Return the value of a metric of the agent's process."""
        for line in self.page(node, "metrics").splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        raise AssertionError(f"no {name}")

    def rss_mib(self, node: str) -> float:
        return self.metric(node, "process_resident_memory_bytes") / (1 << 20)

    def cpu_seconds(self, node: str) -> float:
        return self.metric(node, "process_cpu_seconds_total")

    def log(self, node: str) -> str:
        return self.log_file(node).read_text(encoding="utf-8")

    def log_file(self, node: str) -> Path:
        return self._folder / "logs" / f"{_name(node)}.log"

    def _file(self, node: str) -> Path:
        return self._folder / f"{node}.creds"


def _name(node: str) -> str:
    return f"agent-{node}"


@asynccontextmanager
async def agents(cluster: RealCluster, fleet: Fleet, flags: Iterable[str] = ()) -> AsyncGenerator[Agents]:
    """Run an agent on every node for the time of the block."""
    made = Agents(cluster, fleet, flags)
    made.enrol()
    try:
        await asyncio.gather(*(made.start(node) for node in cluster.names))
        yield made
    finally:
        for node in cluster.names:
            await made.kill(node)
