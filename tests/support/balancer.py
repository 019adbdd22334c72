"""Several replicas behind one address, as a Service of a cluster has them: each new connection goes to the next one.

async with balanced_webhooks(flotilla, 2) as names:
    flotilla.kill(names[0])  # its connections end; new ones go to the other
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from flotilla_cli.cluster.ports import HOST, free_ports
from tests.support.fleet import Fleet

CHUNK = 64 << 10


class Balancer:
    """Passes connections on, one replica after the other; one that does not answer is left out."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._next = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, port: int) -> asyncio.Server:
        """Accept connections on the port."""
        return await asyncio.start_server(self._accept, HOST, port)

    async def close(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with contextlib.closing(writer):
            opened = await self._open()
            if opened is None:
                return
            with contextlib.closing(opened[1]), contextlib.suppress(OSError):
                await _both((reader, opened[1]), (opened[0], writer))

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A connection to the next replica that answers; None if none does."""
        for _ in self._ports:
            port = self._ports[self._next % len(self._ports)]
            self._next += 1
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(HOST, port)
        return None


async def _both(*directions: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Copy in both directions until either ends."""
    pumps = [asyncio.ensure_future(_pump(*one)) for one in directions]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()


@asynccontextmanager
async def balanced_webhooks(flotilla: Fleet, count: int) -> AsyncGenerator[list[str]]:
    """So many replicas of the webhook for the time of the block, ready, by name; the set must have none of its own."""
    ports = free_ports(count)
    balancer = Balancer(ports)
    server = await balancer.serve(flotilla.webhook_port)
    try:
        names = [f"webhook-{number}" for number in range(count)]
        for number, port in enumerate(ports):
            flags = (f"--webhook-port={port}",)
            await flotilla.start("webhook", replica=str(number), wait=False, flags=flags)
        for name in names:
            await flotilla.ready(name)
        yield names
    finally:
        server.close()
        await balancer.close()
