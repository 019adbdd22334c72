"""A faulty network between our processes and the servers that they connect to.

A `Wire` passes bytes on, and can be late, slow, mute or cut. An `ApiProxy` behind one terminates the TLS of an
apiserver's clients, so that it can distinguish requests and watches and spoil those that a test names:

    async with api_proxy(cluster, folder, authority, tls) as proxy:
        … processes with --kubeconfig=proxy.kubeconfig …
        with proxy.spoiling(is_write, answer(429, {"Retry-After": "1"}), times=20) as spoilt:
            await spoilt.happened(20)
"""

import asyncio
import contextlib
import io
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from flotilla_cli.local import HOST
from tests.support.certificates import Authority
from tests.support.cluster import Cluster

CHUNK = 64 << 10
LARGEST = 16 << 20
"""More than any request to an apiserver may have."""

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"})


class Wire:
    """A TCP port in front of another one. Its attributes are its faults, and may change at any time."""

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self.delay = 0.0  # seconds that each piece is late
        self.rate = 0.0  # bytes per second and direction; 0: as fast as it goes
        self.cut_after = 0  # bytes to a client until its connection is cut
        self.cuts = 0
        self.accepted = 0
        self._target = (host, port)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    def reset(self) -> None:
        """Reset every connection."""
        for writer in list(self._ends):
            writer.transport.abort()

    @contextmanager
    def mute(self) -> Generator[None]:
        """Leave all connections half-open: nothing passes, nothing ends, new ones are accepted and never answered.

        After the block they are reset, as by a gateway that has lost their state.
        """
        self._flowing.clear()
        try:
            yield
        finally:
            self.reset()
            self._flowing.set()

    async def serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        """Serve one connection until one of its ends is closed."""
        self.accepted += 1
        self._ends.add(answer)
        try:
            await self._flowing.wait()
            server, request = await asyncio.open_connection(*self._target)
        except OSError:
            self._drop(answer)
            return
        self._ends.add(request)
        pumps = [
            asyncio.ensure_future(self._pump(client, request, to_client=False)),
            asyncio.ensure_future(self._pump(server, answer, to_client=True)),
        ]
        self._pumps.update(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        self._pumps.difference_update(pumps)
        self._drop(request)
        self._drop(answer)

    async def close(self) -> None:
        """End all connections."""
        self.reset()
        for pump in list(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, to_client: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(CHUNK):
                await self._flowing.wait()
                if to_client and self.cut_after:
                    sink.write(piece[: self.cut_after])
                    self.cut_after = max(self.cut_after - len(piece), 0)
                    if not self.cut_after:
                        self.cuts += 1
                        await sink.drain()
                        return
                    continue
                if self.delay or self.rate:
                    await asyncio.sleep(self.delay + (len(piece) / self.rate if self.rate else 0))
                sink.write(piece)
                await sink.drain()

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._ends.discard(writer)
        writer.transport.abort()


@asynccontextmanager
async def wire(host: str, port: int) -> AsyncGenerator[Wire]:
    """Open a wire on a free port for the time of the block."""
    made = Wire(host, port)
    server = await asyncio.start_server(made.serve, HOST, 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.close()


class Request:
    """The properties of a request by which faults select it."""

    def __init__(self, request: web.Request) -> None:
        self.method = request.method
        self.path = request.path
        self.watch = "watch" in request.query
        self.dry_run = "dryRun" in request.query

    @property
    def write(self) -> bool:
        """Report whether the request changes something."""
        return self.method != "GET"


class Reset(Exception):
    """Raised by a fault: the connection ends with a reset."""


class Spoilt:
    """One active fault."""

    def __init__(self, match: Callable[[Request], bool], fault: "Fault", times: int) -> None:
        self.match = match
        self.fault = fault
        self.left = times
        self.count = 0
        self.requests: list[tuple[float, str]] = []  # what was hit, and when (the loop's time)
        self.over = asyncio.Event()
        self._counted = asyncio.Condition()

    async def happened(self, times: int = 1, seconds: float = 90) -> None:
        """Wait until it has struck so often."""
        async with asyncio.timeout(seconds), self._counted:
            await self._counted.wait_for(lambda: self.count >= times)

    async def strike(self) -> None:
        """Count one."""
        async with self._counted:
            self.count += 1
            self._counted.notify_all()


class Fault:
    """Passes everything on. Its children spoil one of its steps, and call `strike` when they do."""

    async def before(self, spoilt: Spoilt, request: web.Request) -> web.StreamResponse | None:
        """Act before the request is passed on, which an answer prevents."""
        return None

    async def after(self, spoilt: Spoilt) -> None:
        """Apply the fault after the apiserver's answer, before the client receives it."""

    def body(self, spoilt: Spoilt, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Return the body for the client."""
        return pieces


class ApiProxy:
    """The HTTP side. Its kubeconfig leads through its wire."""

    def __init__(self, kubeconfig: Path, upstream: aiohttp.ClientSession, server: str) -> None:
        self.kubeconfig = kubeconfig
        self.wire = Wire("", 0)
        self._upstream = upstream
        self._server = server
        self._spoilt: list[Spoilt] = []

    @contextmanager
    def spoiling(self, match: Callable[[Request], bool], fault: Fault, times: int = 1 << 30) -> Generator[Spoilt]:
        """Spoil up to `times` matching requests for the time of the block."""
        spoilt = Spoilt(match, fault, times)
        self._spoilt.append(spoilt)
        try:
            yield spoilt
        finally:
            self._spoilt.remove(spoilt)
            spoilt.over.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass one request on, as the faults allow."""
        spoilt = self._struck(Request(request))
        try:
            if spoilt is not None:
                instead = await spoilt.fault.before(spoilt, request)
                if instead is not None:
                    return instead
            return await self._pass_on(request, spoilt)
        except (Reset, aiohttp.ClientError, OSError):
            if request.transport is not None:
                request.transport.abort()
            return web.Response()  # discarded: the connection is gone

    def _struck(self, request: Request) -> Spoilt | None:
        for spoilt in self._spoilt:
            if spoilt.left and spoilt.match(request):
                spoilt.left -= 1
                spoilt.requests.append((asyncio.get_running_loop().time(), f"{request.method} {request.path}"))
                return spoilt
        return None

    async def _pass_on(self, request: web.Request, spoilt: Spoilt | None) -> web.StreamResponse:
        url = URL(self._server + request.raw_path, encoded=True)
        headers = _passed(request.headers)
        headers["Accept-Encoding"] = "identity"  # faults cut bodies by their bytes
        body = io.BytesIO(await request.read()) if request.can_read_body else None
        async with self._upstream.request(
            request.method, url, data=body, headers=headers, allow_redirects=False
        ) as reply:
            if spoilt is not None:
                await spoilt.fault.after(spoilt)
            answer = web.StreamResponse(status=reply.status, reason=reply.reason, headers=_passed(reply.headers))
            await answer.prepare(request)
            pieces: AsyncIterator[bytes] = reply.content.iter_any()
            async for piece in pieces if spoilt is None else spoilt.fault.body(spoilt, pieces):
                await answer.write(piece)
            await answer.write_eof()
            return answer


def _passed(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP)


@asynccontextmanager
async def api_proxy(
    cluster: Cluster, folder: Path, authority: Authority, tls: ssl.SSLContext
) -> AsyncGenerator[ApiProxy]:
    """Run a proxy in front of the cluster's apiserver, with a certificate of `authority`, for the time of the block."""
    document = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    there = document["clusters"][0]["cluster"]
    trust = ssl.create_default_context(cafile=there["certificate-authority"])
    connector = aiohttp.TCPConnector(ssl=trust, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as upstream:
        proxy = ApiProxy(folder / "proxied.kubeconfig", upstream, there["server"])
        application = web.Application(client_max_size=LARGEST)
        application.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, HOST, 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with wire(HOST, port) as proxy.wire:
                there["server"] = f"https://{HOST}:{proxy.wire.port}"
                there["certificate-authority"] = str(authority.file)
                proxy.kubeconfig.write_text(yaml.safe_dump(document), encoding="utf-8")
                yield proxy
        finally:
            await runner.cleanup()
