"""A private nats-server that requires TLS and can change its certificate while it runs, and a client that uses it."""

import asyncio
import shutil
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from flotilla_cli.local import HOST, bound_command
from flotilla_common.bus.interface import BusError, Message, StreamSpec
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.ports import free_ports
from tests.support.broker import BusAt
from tests.support.cluster import eventually, programs

CONFIGURATION = """\
host: {host}
port: {port}
log_file: "{folder}/nats.log"
jetstream {{ store_dir: "{folder}/store" }}
tls {{ cert_file: "{folder}/server.pem", key_file: "{folder}/server.pem" }}
"""
RELOADED = "Reloaded server configuration"
STREAM = StreamSpec(name="tls", subjects=("tls.>",), last_value=True)


class TlsBroker:
    """The server, with its `log`."""

    def __init__(self, folder: Path, port: int, process: Process) -> None:
        self.port = port
        self._folder = folder
        self._process = process

    @property
    def log(self) -> str:
        file = self._folder / "nats.log"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    async def show(self, pair: Path) -> None:
        """Show this certificate from now on. Connections stay."""
        before = self.log.count(RELOADED)
        shutil.copy(pair, self._folder / "server.pem")
        self._process.send_signal(signal.SIGHUP)
        await eventually(lambda: self.log.count(RELOADED) > before)


@asynccontextmanager
async def tls_broker(folder: Path, pair: Path) -> AsyncGenerator[TlsBroker]:
    """Run the server for the time of the block, at first with this certificate."""
    (port,) = free_ports(1)
    shutil.copy(pair, folder / "server.pem")
    config = folder / "nats.conf"
    config.write_text(CONFIGURATION.format(host=HOST, port=port, folder=folder), encoding="utf-8")
    command = bound_command([str(programs()("nats-server")), "--config", str(config)])
    process = await asyncio.create_subprocess_exec(*command)
    broker = TlsBroker(folder, port, process)
    try:
        await eventually(lambda: "Server is ready" in broker.log)
        yield broker
    finally:
        process.kill()
        await process.wait()


class Reader:
    """A client that follows a stream, and the messages that it received."""

    def __init__(self, port: int, authority: Path) -> None:
        at = BusAt(f"tls://{HOST}:{port}", nats_ca=str(authority), allow_open_bus=True)
        self.bus = NatsBus(at, name="reader", clock=SystemClock())
        self.heard: list[bytes] = []

    async def begin(self) -> None:
        """Connect and follow."""
        await self.bus.ensure_stream(STREAM)
        await self.bus.follow(STREAM.name, ("tls.>",), self._hear, self.heard.clear)
        await self.hears(b"first")

    async def hears(self, text: bytes) -> None:
        """Check that messages published from now on arrive, as soon as there is a connection."""
        clock = SystemClock()
        async with asyncio.timeout(60):
            while text not in self.heard:
                with suppress(BusError):
                    await self.bus.publish("tls.text", text)
                await clock.sleep(0.1)

    def _hear(self, message: Message) -> None:
        self.heard.append(message.data)
