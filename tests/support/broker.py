"""A private nats-server that a test may kill, pause, restart and wipe.

It runs in a container where Docker is available (see `containers`), else as a process. Users, limits and configuration
are the same, and so are the tests.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from flotilla_cli.local import HOST
from flotilla_cli.nats_config import BusUsers, credentials_of
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.nats import ENVIRONMENT, NatsServer, configure, start_nats
from flotilla_dev.cluster.ports import free_ports, serves
from tests.support.cluster import eventually, programs
from tests.support.containers import DockerContainer, contained, container, inner
from tests.support.stand_ins import NATS

STORE = "nats"


class BusAt(msgspec.Struct, frozen=True):
    """Settings of a bus client."""

    nats_url: str
    nats_creds: str = ""
    nats_ca: str = ""
    allow_open_bus: bool = False
    bus_copies: int = 1


def people(server: NatsServer) -> BusAt:
    """Return the address and credentials of a client that may do everything."""
    return BusAt(server.url, str(credentials_of(Path(server.credentials))), server.authority)


def environment(server: NatsServer) -> dict[str, str]:
    """Return the environment of a command that reads the bus given by `--nats`."""
    given = {"FLOTILLA_NATS_CREDS": people(server).nats_creds, "FLOTILLA_NATS_CA": server.authority}
    return {**os.environ, **given}


class Server(Protocol):
    """A nats-server on one port, with its state in one folder."""

    async def start(self) -> None:
        """Return when it serves."""
        ...

    async def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        ...

    async def pause(self) -> None:
        """Return when all processes of the server are stopped."""
        ...

    def resume(self) -> None: ...


class ProcessServer:
    """A nats-server as a process of this machine."""

    def __init__(self, folder: Path, port: int, monitor: int) -> None:
        self._folder = folder
        self._port = port
        self._monitor = monitor
        self._server: NatsServer | None = None

    async def start(self) -> None:
        self._server = await start_nats(self._folder, self._port, program=programs(), monitor_port=self._monitor)

    async def kill(self) -> None:
        await self._running.close(SystemClock(), grace=0)

    async def pause(self) -> None:
        os.kill(self._running.process.pid, signal.SIGSTOP)
        tasks = Path(f"/proc/{self._running.process.pid}/task")
        await eventually(lambda: all(") T " in (task / "stat").read_text() for task in tasks.iterdir()))

    def resume(self) -> None:
        os.kill(self._running.process.pid, signal.SIGCONT)

    @property
    def _running(self) -> NatsServer:
        assert self._server is not None
        return self._server


class ContainerServer:
    """A nats-server in a container, which stays the same when the process in it dies."""

    def __init__(self, started: DockerContainer, monitor: int) -> None:
        self._container = inner(started)
        self._monitor = monitor

    async def start(self) -> None:
        await asyncio.to_thread(self._container.start)
        clock = SystemClock()
        async with asyncio.timeout(60):
            while not await serves(f"http://{HOST}:{self._monitor}/healthz"):
                await clock.sleep(0.05)

    async def kill(self) -> None:
        await asyncio.to_thread(self._container.reload)
        if self._container.status != "exited":  # killing is harmless, as it is for processes
            await asyncio.to_thread(self._container.kill)
            await asyncio.to_thread(self._container.wait)

    async def pause(self) -> None:
        await asyncio.to_thread(self._container.pause)

    def resume(self) -> None:
        self._container.unpause()


class Broker:
    """One nats-server on one port, across its restarts."""

    def __init__(self, folder: Path, port: int, server: Server) -> None:
        self._folder = folder
        self._server = server
        self.url = f"nats://{HOST}:{port}"
        self.people = BusAt(self.url, str(credentials_of(BusUsers(folder).credentials)))
        self.kill = server.kill
        self.start = server.start
        self.pause = server.pause
        self.resume = server.resume

    def bus(self, name: str = "test") -> NatsBus:
        """Return a new client that may do everything; the caller closes it."""
        return NatsBus(self.people, name=name, clock=SystemClock())

    async def wipe(self) -> None:
        """Kill it, remove everything that it stored, start it again."""
        await self.kill()
        shutil.rmtree(self._folder / STORE)
        await self.start()


@asynccontextmanager
async def broker(state_dir: Path) -> AsyncIterator[Broker]:
    """Run a nats-server for the time of the block."""
    port, monitor = free_ports(2)
    async with _server(state_dir, port, monitor) as server:
        await server.start()
        yield Broker(state_dir, port, server)


@asynccontextmanager
async def _server(folder: Path, port: int, monitor: int) -> AsyncIterator[Server]:
    if contained(NATS):
        users = BusUsers(folder)
        users.prepare()
        config = configure(users, folder, HOST, port, monitor, SystemClock())
        command = ["nats-server", "--config", str(config)]
        with container(NATS, command, folder=folder, env=dict(ENVIRONMENT)) as started:
            yield ContainerServer(started, monitor)
        return
    server = ProcessServer(folder, port, monitor)
    try:
        yield server
    finally:
        await server.kill()
