"""A private nats-server that a test may kill, pause, restart and wipe."""

import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from flotilla_cli.cluster.bus_users import credentials_of
from flotilla_cli.cluster.nats import NatsServer, start_nats
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from tests.support.cluster import eventually, programs

STORE = "nats"


class BusAt(msgspec.Struct, frozen=True):
    """Settings of a bus client."""

    nats_url: str
    nats_creds: str = ""
    nats_ca: str = ""
    allow_open_bus: bool = False
    bus_copies: int = 1


def people(server: NatsServer) -> BusAt:
    """The bus for a client that may do everything."""
    return BusAt(server.url, str(credentials_of(Path(server.credentials))), server.authority)


def environment(server: NatsServer) -> dict[str, str]:
    """Of a command that reads the bus, which `--nats` names."""
    given = {"FLOTILLA_NATS_CREDS": people(server).nats_creds, "FLOTILLA_NATS_CA": server.authority}
    return {**os.environ, **given}


class Broker:
    """One nats-server on one port, through its deaths."""

    def __init__(self, state_dir: Path, server: NatsServer) -> None:
        self._state_dir = state_dir
        self._server = server
        self.url = server.url
        self.people = people(server)

    def bus(self, name: str = "test") -> NatsBus:
        """A client of its own, which may do everything; the caller closes it."""
        return NatsBus(self.people, name=name, clock=SystemClock())

    async def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        await self._server.close(SystemClock(), grace=0)

    async def pause(self) -> None:
        """SIGSTOP, and wait until all of it stands still."""
        os.kill(self._server.process.pid, signal.SIGSTOP)
        tasks = Path(f"/proc/{self._server.process.pid}/task")
        await eventually(lambda: all(") T " in (task / "stat").read_text() for task in tasks.iterdir()))

    def resume(self) -> None:
        os.kill(self._server.process.pid, signal.SIGCONT)

    async def start(self) -> None:
        port = int(self.url.rpartition(":")[2])
        self._server = await start_nats(self._state_dir, port, program=programs())

    async def wipe(self) -> None:
        """Kill it, remove everything that it stored, start it again."""
        await self.kill()
        shutil.rmtree(self._state_dir / STORE)
        await self.start()


@asynccontextmanager
async def broker(state_dir: Path) -> AsyncIterator[Broker]:
    """A nats-server for the time of the block."""
    server = await start_nats(state_dir, program=programs())
    running = Broker(state_dir, server)
    try:
        yield running
    finally:
        await running.kill()
