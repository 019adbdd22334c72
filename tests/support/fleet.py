"""Flotilla's services as processes of their own beside a test's control plane: started, killed, paused, measured.

async with control_plane(tmp_path) as cluster, fleet(cluster) as flotilla:
    cluster.kubectl("apply", "-f", "-", stdin=manifest)
    flotilla.kill("cloneset")
    await flotilla.start("cloneset")
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from flotilla_cli.local import HOST, Process, is_alive, reap
from flotilla_cli.nats_config import credentials_of
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.subjects import ACT_STREAM
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.nats import NatsServer, start_nats
from flotilla_dev.cluster.ports import free_ports
from flotilla_dev.cluster.processes import send
from tests.support.broker import people
from tests.support.cluster import Cluster, eventually, programs

SERVICES = ("watcher", "cloneset", "webhook")
ALL_SERVICES = (*SERVICES, "statefulset", "daemonset", "jobs", "sidecar", "topology", "policy")
"""The whole set, as with `flotilla up`."""
PROGRAM = ("-m", "flotilla_cli")
TICKS = os.sysconf("SC_CLK_TCK")


class Member:
    """One running process of one service."""

    def __init__(self, name: str, process: Process, health: int, metrics: int) -> None:
        self.name = name
        self.process = process
        self.health = health
        self.metrics_port = metrics

    def ready(self) -> bool:
        """Report whether the process lives and /readyz succeeds."""
        return is_alive(self.process) and page(self.health, "readyz")[0] == 200

    def why_not_ready(self) -> str:
        """Return the text of /readyz."""
        return page(self.health, "readyz")[1]

    def metrics_text(self) -> str:
        """Return the whole metrics page."""
        return page(self.metrics_port, "metrics")[1]

    def metric(self, name: str) -> float:
        """Return the sum over all series of a metric."""
        text = self.metrics_text()
        lines = [line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def log(self) -> str:
        """Return the process's whole log, with that of earlier processes of its name."""
        return Path(self.process.log).read_text(encoding="utf-8")

    def state(self, lines: int = 5) -> str:
        """Return whether the process runs, what keeps it from being ready, and its latest warnings and errors."""
        runs = "runs" if is_alive(self.process) else "has ended"
        troubles = [line[:500] for line in self.log().splitlines() if '"level": "info"' not in line]
        missing = [line for line in self.why_not_ready().splitlines() if not line.endswith(" ok")]
        return "\n    ".join([runs, *missing, *troubles[-lines:]])

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process so far."""
        return cpu_seconds(self.process.pid)

    def rss_mib(self) -> float:
        """Return the resident memory in MiB."""
        return memory_mib(self.process.pid, "VmRSS")


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mib(pid: int, field: str) -> float:
    """Return a figure of a process's memory in MiB: VmRSS is the resident part, VmHWM its peak."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no {field}")


def page(port: int, path: str) -> tuple[int, str]:
    """Return code and text of a page of a service on this machine; 0 and the error if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


class Fleet:
    """The services of one test."""

    def __init__(self, cluster: Cluster, nats: NatsServer, flags: Iterable[str]) -> None:
        self.cluster = cluster
        self.nats = nats
        self.members: dict[str, Member] = {}
        self.webhook_port = free_ports(1)[0]
        self._flags = list(flags)
        self._folder = cluster.plane.places.state_dir

    @property
    def webhook_url(self) -> str:
        """Return the address at which the apiserver reaches the webhook."""
        return f"https://127.0.0.1:{self.webhook_port}"

    async def start(
        self,
        service: str,
        *,
        replica: str = "",
        wait: bool = True,
        flags: Iterable[str] = (),
        program: Sequence[str] = PROGRAM,
    ) -> Member:
        """Start a service (under `replica` a further one beside it) and wait until it is ready."""
        name = f"{service}-{replica}" if replica else service
        health, metrics = free_ports(2)
        argv = [
            sys.executable, *program, "run", service,
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--nats={self.nats.url}",
            f"--health-port={health}",
            f"--metrics-port={metrics}",
            f"--webhook-url={self.webhook_url}",
            f"--webhook-port={self.webhook_port}",
            f"--webhook-cert-dir={self._folder / 'webhook-certs'}",
            f"--nats-creds={credentials_of(Path(self.nats.credentials), service)}",
            *([f"--nats-ca={self.nats.authority}"] if self.nats.authority else []),
            *self._flags, *flags,
        ]  # fmt: skip
        root = Path(__file__).parents[2]
        env = {"PYTHONPATH": str(root), "FLOTILLA_REPLICA": f"{name}-{health}"}
        log = self._folder / "logs" / f"{name}.log"
        process = self.cluster.plane.processes.spawn(name, argv, log, bound=True, env=env)
        member = self.members[name] = Member(service, process, health, metrics)
        if wait:
            await self.ready(name)
        return member

    async def ready(self, name: str, seconds: float = 90) -> None:
        """Wait for /readyz; on failure report what the service waits for and what it logged."""
        member = self.members[name]
        try:
            await eventually(member.ready, seconds)
        except TimeoutError:
            raise AssertionError(f"{name} is not ready: {member.why_not_ready()}\n{member.log()[-3000:]}") from None

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self.members.pop(name).process
        send(process, signal.SIGKILL)
        reap(process.pid)

    async def terminate(self, name: str) -> None:
        """Send SIGTERM, and wait for the end of the process."""
        process = self.members.pop(name).process
        send(process, signal.SIGTERM)

        def ended() -> bool:
            reap(process.pid)
            return not is_alive(process)

        await eventually(ended)

    def pause(self, name: str) -> None:
        """Send SIGSTOP."""
        send(self.members[name].process, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Send SIGCONT."""
        send(self.members[name].process, signal.SIGCONT)

    async def restart(self, name: str, *, wait: bool = True) -> Member:
        """kill -9, and start it again under another identity: its leases have to run out first."""
        service = self.members[name].name
        self.kill(name)
        return await self.start(service, replica=name.removeprefix(service).removeprefix("-"), wait=wait)

    @asynccontextmanager
    async def bus(self) -> AsyncGenerator[NatsBus]:
        """Connect a client to the bus for the time of the block."""
        client = NatsBus(people(self.nats), name="test", clock=SystemClock())
        try:
            await client.ensure_stream(ACT_STREAM)  # returns when it is connected
            yield client
        finally:
            await client.close()

    async def kill_bus(self) -> None:
        """kill -9 of nats-server; what it stored stays."""
        await self.nats.close(SystemClock(), grace=0)

    async def start_bus(self) -> None:
        """Start nats-server again where its clients look for it."""
        address = urlsplit(self.nats.url)
        host, port = address.hostname or HOST, address.port or 0
        self.nats = await start_nats(self._folder, port, program=programs(), host=host)

    async def wipe_bus(self) -> None:
        """kill -9 of nats-server, and start it with nothing stored."""
        await self.kill_bus()
        shutil.rmtree(self._folder / "nats")
        await self.start_bus()

    async def kill_component(self, *names: str) -> None:
        """Kill -9 parts of the control plane: etcd, kube-apiserver and so on."""
        await self.cluster.plane.processes.stop(names, SystemClock(), grace=0)

    async def repair_control_plane(self) -> None:
        """Start the parts that do not run, and wait until the apiserver serves.

        The fake kubelets are restarted: unlike real ones they never repeat a status write that failed.
        """
        await self.kill_component("kwok")
        await self.cluster.plane.start()

    async def kill_everything(self, services: Sequence[str]) -> None:
        """Kill -9 these services, the bus, etcd and the apiserver, and start all of them again."""
        for service in services:
            self.kill(service)
        await self.kill_bus()
        await self.kill_component("kube-apiserver", "etcd")
        await self.repair_control_plane()
        await self.start_bus()
        for service in services:
            await self.start(service, wait=False)

    async def healthy(self, seconds: float = 90) -> None:
        """Wait until every process is ready, and check that none has logged a programming error."""
        for name in list(self.members):
            await self.ready(name, seconds)
            log = self.members[name].log()
            assert "Traceback" not in log, f"{name}: {log[log.index('Traceback') - 1000 :][:4000]}"

    def state(self) -> str:
        """Return a line for each process: whether it runs and is ready; with its latest warnings and errors."""
        return "\n".join(f"{name}: {member.state()}" for name, member in self.members.items())

    async def stop(self) -> None:
        """End everything."""
        for name in list(self.members):
            self.resume(name)
            self.kill(name)
        await self.nats.close(SystemClock())


def install(cluster: Cluster, webhook_url: str) -> None:
    """Run `flotilla install` as a user does."""
    command = [sys.executable, "-m", "flotilla_cli", "install", "--kubeconfig", str(cluster.kubeconfig)]
    reply = subprocess.run(
        [*command, "--webhook-url", webhook_url], capture_output=True, text=True, timeout=180, check=False
    )
    assert reply.returncode == 0, reply.stderr + reply.stdout


@asynccontextmanager
async def fleet(
    cluster: Cluster, services: Iterable[str] = SERVICES, flags: Iterable[str] = ()
) -> AsyncGenerator[Fleet]:
    """Run all services, installed and ready, for the time of the block."""
    flotilla = Fleet(cluster, await cluster.nats(), flags)
    try:
        await asyncio.to_thread(install, cluster, flotilla.webhook_url)
        for service in services:
            await flotilla.start(service, wait=False)
        for name in list(flotilla.members):
            await flotilla.ready(name)
        yield flotilla
    finally:
        await flotilla.stop()
