"""A registry that fails as a test defines, in front of the set's own one.

    with registry_front(cluster) as front:
        front.serve("sick.example")                    # images of this registry come through the front now
        front.spoil("shop/app", refuse(500))           # … and this repository fails
        … pull sick.example/shop/app:v1 on some node …
        assert len(front.attempts("shop/app", "real-0")) == 2
        front.heal("shop/app")

Repositories in `passwords` require a login, as private ones do. It runs on a thread of its own, since tests that wait
with kubectl keep their event loop busy.
"""

import asyncio
import base64
import re
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import aiohttp
from aiohttp import web

from flotilla_dev.cluster.realnodes import daemons
from tests.support.nodes import RealCluster

APART = 0.9  # seconds; attempts are at least one second apart
MANIFESTS, BLOBS = "manifests", "blobs"
PASSED = ("Accept", "Range")
RETURNED = ("Content-Type", "Content-Range", "Docker-Content-Digest")
_PATH = re.compile(r"/v2/(?P<repository>.+)/(?P<kind>manifests|blobs)/(?P<name>[^/]+)")


class Asked(NamedTuple):
    """One request of a node."""

    at: float  # seconds, monotonic
    node: str
    method: str
    repository: str
    kind: str  # MANIFESTS or BLOBS
    name: str  # tag or digest
    user: str  # user of the request; empty if anonymous
    denied: bool  # for lack of a valid password


class Exchange(NamedTuple):
    """A request, and the function that gets the good answer to it."""

    asked: Asked
    request: web.Request
    good: Callable[[], Awaitable[web.Response]]
    healed: asyncio.Event


Trouble = Callable[[Exchange], Awaitable[web.StreamResponse]]


def refuse(code: int) -> Trouble:
    """Answer every request with this code."""

    async def answer(exchange: Exchange) -> web.StreamResponse:
        return _refusal(code)

    return answer


def hang(*kinds: str) -> Trouble:
    """Hold all requests for these parts (default: all) until the trouble is over."""

    async def answer(exchange: Exchange) -> web.StreamResponse:
        if exchange.asked.kind in (kinds or (MANIFESTS, BLOBS)):
            await exchange.healed.wait()
        return await exchange.good()

    return answer


def half_a_layer(least: int = 10_000) -> Trouble:
    """Withhold the second half of content of some size, from whatever offset it is requested."""

    async def answer(exchange: Exchange) -> web.StreamResponse:
        good = await exchange.good()
        body = good.body
        assert isinstance(body, bytes)
        begin, total = _range(good, len(body))
        if exchange.asked.kind != BLOBS or exchange.asked.method != "GET" or total < least:
            return good
        reply = web.StreamResponse(status=good.status, headers=_chosen(good.headers))
        reply.content_length = len(body)
        await reply.prepare(exchange.request)
        await reply.write(body[: max(total // 2 - begin, 0)])
        assert exchange.request.transport is not None
        exchange.request.transport.close()  # after what was written has left
        return reply

    return answer


class Front:
    """The front; made by `registry_front`."""

    def __init__(self, cluster: RealCluster) -> None:
        self.passwords: dict[str, tuple[str, str]] = {}  # user and password, by repository
        self.asked: list[Asked] = []
        self.port = 0
        self._troubles: dict[str, tuple[Trouble, asyncio.Event]] = {}
        self._cluster = cluster
        network = cluster.nodes.network
        self._host = str(network.host)
        self._nodes = {network.node(index): name for index, name in enumerate(cluster.names)}
        self._started = threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def serve(self, registry: str) -> None:
        """Serve the registry of this name to all nodes."""
        daemons.trust_registry(self._cluster.nodes.registries, registry, f"http://{self._host}:{self.port}")

    def spoil(self, repository: str, trouble: Trouble) -> None:
        """Apply this trouble to requests for the repository from now on."""
        self._troubles[repository] = trouble, asyncio.Event()

    def heal(self, repository: str) -> None:
        """End the repository's trouble. What hangs is answered."""
        _, healed = self._troubles.pop(repository)
        self._loop.call_soon_threadsafe(healed.set)

    def attempts(self, repository: str, node: str, lasts: float = 0.0) -> list[float]:
        """Return when a node began to pull: containerd looks the tag up first, and may do so several times in a row.

        Requests that follow each other in less than `APART` belong to one attempt, as do all within `lasts` seconds
        from its beginning.
        """
        wanted = (node, repository, MANIFESTS)
        times = [one.at for one in list(self.asked) if (one.node, one.repository, one.kind) == wanted]
        begun: list[float] = []
        for before, at in pairwise([-APART, *times]):
            if at - before >= APART and (not begun or at - begun[-1] >= lasts):
                begun.append(at)
        return begun

    def wanted(self, repository: str, kind: str = BLOBS) -> set[str]:
        """Return the nodes that have requested content of the repository."""
        return {one.node for one in list(self.asked) if (one.repository, one.kind) == (repository, kind)}

    def start(self) -> None:
        """Start the front; return when it listens."""
        self._thread.start()
        if not self._started.wait(20):
            raise AssertionError("the registry front did not start")

    def stop(self) -> None:
        """End all requests."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        url = self._cluster.registry.url
        async with aiohttp.ClientSession(url, auto_decompress=False) as backend:

            async def handle(request: web.Request) -> web.StreamResponse:
                return await self._answered(request, backend)

            application = web.Application()
            application.router.add_route("*", "/{path:.*}", handle)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            await web.TCPSite(runner, self._host, 0).start()
            self.port = runner.addresses[0][1]
            self._started.set()
            await self._over.wait()
            await runner.cleanup()

    async def _answered(self, request: web.Request, backend: aiohttp.ClientSession) -> web.StreamResponse:
        async def good() -> web.Response:
            headers = {name: request.headers[name] for name in PASSED if name in request.headers}
            async with backend.request(request.method, request.path, headers=headers) as reply:
                return web.Response(status=reply.status, headers=_chosen(reply.headers), body=await reply.read())

        found = _PATH.fullmatch(request.path)
        if found is None:
            return await good()
        repository, kind, name = found.groups()
        user, denied = self._login(request, repository)
        node = self._nodes.get(request.remote or "", "")
        asked = Asked(time.monotonic(), node, request.method, repository, kind, name, user, denied)
        self.asked.append(asked)
        if denied:
            return _refusal(401)
        trouble = self._troubles.get(repository)
        return await (good() if trouble is None else trouble[0](Exchange(asked, request, good, trouble[1])))

    def _login(self, request: web.Request, repository: str) -> tuple[str, bool]:
        """Return the user of the request, and whether the login is refused."""
        _, _, encoded = request.headers.get("Authorization", "").partition("Basic ")
        user, _, password = base64.b64decode(encoded).decode().partition(":")
        return user, self.passwords.get(repository, (user, password)) != (user, password)


def _refusal(code: int) -> web.Response:
    headers = {"WWW-Authenticate": 'Basic realm="front"'} if code == 401 else None
    return web.json_response({"errors": [{"code": "TROUBLE"}]}, status=code, headers=headers)


def _chosen(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in RETURNED if name in headers}


def _range(reply: web.Response, length: int) -> tuple[int, int]:
    """Return where the body begins in the whole content, and the length of that."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", reply.headers.get("Content-Range", ""))
    return (int(found[1]), int(found[2])) if found else (0, length)


@contextmanager
def registry_front(cluster: RealCluster) -> Generator[Front]:
    """Run a front on a free port for the time of the block."""
    made = Front(cluster)
    made.start()
    try:
        yield made
    finally:
        made.stop()
