"""Runs the stand-in with real nats-server, watcher and services, and measures them.

async with stage(tmp_path, Sizes(sets=10, pods_each=1000, nodes=500)) as played:
    seconds = await played.cold_start()
"""

import asyncio
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import yaml

from flotilla_common.bus.interface import Message
from flotilla_common.clock import SystemClock
from flotilla_common.control.leases import Lease
from flotilla_common.control.shards import ROLE_LABEL, SERVICE_LABEL
from flotilla_dev.cluster.control_plane import ControlPlane, PlaneOptions
from flotilla_dev.cluster.ports import free_ports
from tests.perf.played.population import Sizes
from tests.support.cluster import Cluster, eventually, programs
from tests.support.fleet import Fleet, Member, cpu_seconds, memory_mib, page

SERVICES = ("watcher", "cloneset", "statefulset", "daemonset", "jobs", "sidecar", "topology", "policy")
"""All services but the webhook, which reads nothing from the bus."""

SYNCED = b"synced from the bus"
"""Log line of a service that has read everything of a resource from the bus."""

PODS = "kube.v1.core.pods.>"
DIRECT = 'flotilla_mirror_direct{resource="core.pods"}'
LIMIT = 180.0
"""Seconds that any step may take."""

POLL_SECONDS = 0.1
ROOT = Path(__file__).parents[3]


class Shown(msgspec.Struct):
    """What the player has recorded."""

    sent: dict[int, float]
    reactions: list[float]
    requests: dict[str, int]


class Leases(msgspec.Struct):
    """A LIST of leases."""

    items: list[Lease]


class Reader:
    """What a service reads from the bus, by its log."""

    def __init__(self, member: Member) -> None:
        self._log = Path(member.process.log)
        self._known = _resources(self._log.read_bytes())
        self._read = self._log.stat().st_size

    def has_read_again(self) -> bool:
        """Report whether it has read everything once more since this reader was made."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            return _resources(log.read()) >= self._known


def _resources(log: bytes) -> set[object]:
    lines = [line for line in log.splitlines() if SYNCED in line]
    return {msgspec.json.decode(line, type=dict[str, object])["resource"] for line in lines}


class Stage:
    """The stand-in and the processes that are connected to it."""

    def __init__(self, flotilla: Fleet, port: int, pid: int, services: Sequence[str]) -> None:
        self.flotilla = flotilla
        self.services = services
        self._port = port
        self._pid = pid
        self._clock = SystemClock()

    async def cold_start(self) -> float:
        """Start all services; returns the seconds until each has read everything that it reads from the bus."""
        started = time.monotonic()
        for service in self.services:
            await self.flotilla.start(service, wait=False)
        await self.wait(lambda: all(member.ready() for member in self.flotilla.members.values()))
        seconds = time.monotonic() - started
        direct = [name for name, member in self.flotilla.members.items() if member.metric(DIRECT)]
        assert not direct, f"{direct} read pods from the apiserver, not from the bus"
        return seconds

    async def seconds_to_sync(self, harm: Awaitable[None]) -> float:
        """Kill something; returns the seconds until all services have read again all that they read from the bus."""
        readers = [Reader(member) for member in self.flotilla.members.values()]
        started = time.monotonic()
        await harm
        await self.wait(lambda: all(reader.has_read_again() for reader in readers))
        return time.monotonic() - started

    async def wait(self, condition: Callable[[], bool], seconds: float = LIMIT) -> None:
        """Wait for a condition of the processes, off the event loop because it reads pages and logs."""
        async with asyncio.timeout(seconds):
            while not await asyncio.to_thread(condition):
                await self._clock.sleep(POLL_SECONDS)

    async def play(self, what: str, rate: float, seconds: float) -> None:
        """Have pods change (`change`) or lost (`lose`) at this rate; returns when it has been done."""
        url = f"http://127.0.0.1:{self._port}/played/{what}?rate={rate}&seconds={seconds}"
        request = urllib.request.Request(url, method="POST")
        await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=seconds + LIMIT).read())

    def shown(self) -> Shown:
        """Return what the player has recorded."""
        _, text = page(self._port, "played")
        return msgspec.json.decode(text, type=Shown)

    def holders(self, service: str) -> Counter[str]:
        """Return how many shards of a service each process holds, by the name under which it holds leases."""
        selector = f"{SERVICE_LABEL}={service},{ROLE_LABEL}=shard"
        _, text = page(self._port, f"apis/coordination.k8s.io/v1/leases?labelSelector={selector}")
        leases = msgspec.json.decode(text, type=Leases).items
        return Counter(lease.spec.holder_identity for lease in leases if lease.spec.holder_identity)

    def memory(self) -> dict[str, float]:
        """Return the resident memory of every process, in MiB."""
        services = {name: member.rss_mib() for name, member in self.flotilla.members.items()}
        return services | {"nats": memory_mib(self.flotilla.nats.process.pid, "VmRSS")}

    def cpu(self) -> dict[str, float]:
        """Return the CPU seconds of every process so far."""
        services = {name: member.cpu_seconds() for name, member in self.flotilla.members.items()}
        return services | {"nats": cpu_seconds(self.flotilla.nats.process.pid), "stand-in": cpu_seconds(self._pid)}

    @asynccontextmanager
    async def arrivals(self) -> AsyncGenerator[dict[int, float]]:
        """Record when each version of a pod arrives at a subscriber of the bus (monotonic seconds)."""
        arrived: dict[int, float] = {}

        def take(message: Message) -> None:
            arrived[int(message.headers.get("rv", "0"))] = time.monotonic()

        async with self.flotilla.bus() as bus:
            following = await bus.subscribe(PODS, take)
            yield arrived
            await following.stop()


def _answers(port: int) -> bool:
    return page(port, "version")[0] == 200


def _kubeconfig(port: int) -> str:
    cluster = {"name": "played", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "played", "context": {"cluster": "played", "user": "played"}}
    users = [{"name": "played", "user": {"token": "none"}}]
    body = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "users": users}
    return yaml.safe_dump(body | {"current-context": "played"})


@asynccontextmanager
async def stage(
    folder: Path, sizes: Sizes, services: Sequence[str] = SERVICES, flags: Sequence[str] = ()
) -> AsyncGenerator[Stage]:
    """Run the stand-in and nats-server for the time of the block; `cold_start` starts the services."""
    program, clock = programs(), SystemClock()
    # The control plane is never started: it is only the place of files and processes.
    plane = ControlPlane(folder, program, clock, options=PlaneOptions(durable=False, bound=True))
    port = free_ports(1)[0]
    plane.kubeconfig.write_text(_kubeconfig(port), encoding="utf-8")
    figures = (f"--sets={sizes.sets}", f"--pods-each={sizes.pods_each}", f"--nodes={sizes.nodes}")
    argv = [sys.executable, "-m", "tests.perf.played", f"--port={port}", *figures]
    standing = plane.processes.spawn("played", argv, bound=True, env={"PYTHONPATH": str(ROOT)})
    try:
        await eventually(lambda: _answers(port))
        cluster = Cluster(plane, program)
        flotilla = Fleet(cluster, await cluster.nats(), flags)
        try:
            yield Stage(flotilla, port, standing.pid, services)
        finally:
            await flotilla.stop()
    finally:
        await plane.processes.stop(["played"], clock, grace=0)
