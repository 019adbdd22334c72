"""Several replicas behind one address, as a Service of a cluster has them: each new connection goes to the next one.

async with balanced_webhooks(flotilla, 2) as webhooks:
    flotilla.kill("webhook-0")  # its connections end; new ones go to the other
    await webhooks.start("webhook-0")
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from flotilla_cli.local import HOST
from flotilla_dev.cluster.ports import free_ports
from tests.support.fleet import Fleet

CHUNK = 64 << 10


class Balancer:
    """Passes connections on to the replicas in turn, leaving out one that does not answer.

    It has a thread of its own: tests may keep theirs busy.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._next = 0
        self.left_out: set[int] = set()
        """Ports of replicas that are being stopped: a Service routes nothing to them."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    async def serve(self, port: int) -> None:
        """Accept connections on the port."""
        self._thread.start()
        await self._there(self._begin(port))

    async def close(self) -> None:
        """End every connection, and the thread."""
        await self._there(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _there(self, work: Coroutine[Any, Any, object]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _begin(self, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, port)

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
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
        """Open a connection to the next replica that answers, or return None."""
        first, self._next = self._next, self._next + 1  # others choose theirs while this one waits for an answer
        for offset in range(len(self._ports)):
            port = self._ports[(first + offset) % len(self._ports)]
            if port in self.left_out:
                continue
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


class Webhooks:
    """The replicas: `webhook-0` and so on."""

    def __init__(self, flotilla: Fleet, ports: Sequence[int], balancer: Balancer) -> None:
        self._flotilla = flotilla
        self._balancer = balancer
        self._ports = {f"webhook-{number}": port for number, port in enumerate(ports)}

    async def stop(self, name: str) -> None:
        """End one as Kubernetes does: it gets SIGTERM, and no new connections. Returns when it has ended."""
        self._balancer.left_out.add(self._ports[name])
        await self._flotilla.terminate(name)
        self._balancer.left_out.clear()

    async def start(self, *names: str) -> None:
        """Start these, by default all of them, and wait until they are ready."""
        for name in names or self._ports:
            flags = (f"--webhook-port={self._ports[name]}",)
            await self._flotilla.start("webhook", replica=name.partition("-")[2], wait=False, flags=flags)
        for name in names or self._ports:
            await self._flotilla.ready(name)


@asynccontextmanager
async def balanced_webhooks(flotilla: Fleet, count: int) -> AsyncGenerator[Webhooks]:
    """Run `count` ready replicas of the webhook for the time of the block; the set must have none of its own."""
    ports = free_ports(count)
    balancer = Balancer(ports)
    await balancer.serve(flotilla.webhook_port)
    webhooks = Webhooks(flotilla, ports, balancer)
    try:
        await webhooks.start()
        yield webhooks
    finally:
        await balancer.close()
