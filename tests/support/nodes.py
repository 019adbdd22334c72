"""Clusters with real nodes for tests: containerd and kubelet in namespaces, images from a registry on this machine.

    async with real_cluster(tmp_path) as cluster:
        await cluster.registry.push("nginx:special", SERVER)
        cluster.kubectl("apply", "-f", "-", stdin=manifest)
        cluster.run_in("real-0", "ctr", "-n", "k8s.io", "containers", "list")

What is missing on the machine is got first: programs from the cache, downloaded or built, packages of Debian with apt.
"""

import os
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from flotilla_cli.local import Process
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.control_plane import ControlPlane, PlaneOptions
from flotilla_dev.cluster.kwok import Kubelet
from flotilla_dev.cluster.nats import NatsServer, start_nats
from flotilla_dev.cluster.programs import SET
from flotilla_dev.cluster.provision import provide
from flotilla_dev.cluster.realnodes import debian
from flotilla_dev.cluster.realnodes.nodes import RealNodes, part_name
from flotilla_dev.cluster.realnodes.registry import Registry
from tests.support.cluster import Cluster


class RealCluster(Cluster):
    """A control plane with real nodes `real-0`, `real-1` and so on."""

    def __init__(
        self, plane: ControlPlane, program: Callable[[str], Path], nodes: RealNodes, registry: Registry, count: int
    ) -> None:
        super().__init__(plane, program)
        self.nodes = nodes
        self.registry = registry
        self.names = [f"real-{index}" for index in range(count)]

    def run_in(self, node: str, *command: str, check: bool = True, timeout: float = 30) -> str:
        """Run a command in a node's namespaces, and return what it prints."""
        argv = self.nodes.inside(node, command)
        env = {**os.environ, "PATH": self.nodes.path}
        reply = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=timeout, check=False)
        if check and reply.returncode:
            raise AssertionError(f"{' '.join(command)} in {node}: {reply.stderr or reply.stdout}")
        return reply.stdout

    def part(self, node: str, part: str) -> Process:
        """Return the process of a node's containerd, kubelet or kube-proxy."""
        found = self.plane.processes.get(part_name(node, part))
        assert found is not None
        return found

    async def nats(self) -> NatsServer:
        """Return a nats-server that the nodes reach too; every client needs credentials."""
        return await start_nats(
            self.plane.places.state_dir, program=self.program, bound=True, host=str(self.nodes.network.host)
        )

    async def kill(self, node: str, *parts: str) -> None:
        """kill -9 of some of a node's daemons; without any, of the whole node, as in a power cut."""
        names = [part_name(node, part) for part in parts] or [node]
        await self.plane.processes.stop(names, SystemClock(), grace=0)

    async def repair(self) -> None:
        """Start what was killed, and wait until all nodes are ready."""
        await self.nodes.start(self.plane, len(self.names))


@asynccontextmanager
async def real_cluster(
    state_dir: Path, *, nodes: int = 3, apiserver_flags: tuple[str, ...] = (), kubelet: Kubelet | None = None
) -> AsyncGenerator[RealCluster]:
    """Run a control plane with real nodes for the time of the block; even `kill -9` of pytest ends all processes.

    `kubelet`: the behaviour of fake nodes that the test adds.
    """
    clock = SystemClock()
    debian.require_root()
    program = await provide(SET, clock, say=print)
    debian.install(print)
    real = RealNodes(state_dir, program, clock, bound=True)
    network = await real.connect()
    options = PlaneOptions(
        address=network.host,
        durable=False,
        bound=True,
        apiserver_flags=apiserver_flags,
        kubelet=kubelet or Kubelet(),
    )
    plane = ControlPlane(state_dir, program, clock, options=options)
    try:
        await plane.start()
        await real.start(plane, nodes)
        yield RealCluster(plane, program, real, await real.registry(), nodes)
    finally:
        await plane.processes.stop(["nats-server"], clock, grace=0)
        await real.stop()
        await plane.stop(grace=0)
