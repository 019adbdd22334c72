"""The proxy in front of the console: it says who the user is, as proxies of companies do, and counts open streams."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

WHO = "who"
"""The cookie with the name of the user at the proxy."""

STREAM = "text/event-stream"
CHUNK = 1 << 16
OWN = frozenset({"connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive"})


class Front:
    """A reverse proxy."""

    def __init__(self, target: str, secret: str, tls: ssl.SSLContext | None = None) -> None:
        """Take the console's URL, and by what it trusts the proxy: a secret, or a certificate in `tls`."""
        self.sessions_ended = False
        """True: no user is signed in any more, whatever their cookie says."""
        self._target, self._secret, self._tls = target, secret, tls
        self._streaming: dict[int, web.Request] = {}

    @property
    def streams(self) -> int:
        """Return the number of open event streams."""
        return len(self._streaming)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Forward a request; 502 while the console is away."""
        headers = CIMultiDict(request.headers)
        for name in ("X-Remote-User", "X-Flotilla-Proxy-Secret"):
            headers.popall(name, None)
        user = request.cookies.get(WHO, "")
        if user and not self.sessions_ended:
            headers["X-Remote-User"] = user
            if self._secret:
                headers["X-Flotilla-Proxy-Secret"] = self._secret
        body = await request.read()
        async with aiohttp.ClientSession(auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)) as session:
            try:
                asked = session.request(
                    request.method,
                    f"{self._target}{request.raw_path}",
                    headers=headers,
                    data=body,
                    allow_redirects=False,
                    ssl=self._tls or True,
                )
                async with asked as answer:
                    return await self._pass_on(request, answer)
            except aiohttp.ClientError:
                return web.Response(status=502, text="the console does not answer")

    async def end_sessions(self) -> None:
        """Sign all users out, and cut their streams."""
        self.sessions_ended = True
        for request in list(self._streaming.values()):
            if request.transport is not None:
                request.transport.close()

    async def _pass_on(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        headers = CIMultiDict((name, value) for name, value in answer.headers.items() if name.lower() not in OWN)
        if "Content-Encoding" in answer.headers:
            headers["Content-Encoding"] = answer.headers["Content-Encoding"]
        passed = web.StreamResponse(status=answer.status, headers=headers)
        if answer.content_type == STREAM:
            self._streaming[id(request)] = request
        try:
            await passed.prepare(request)
            async for chunk in answer.content.iter_any():
                await passed.write(chunk)
            await passed.write_eof()
        except (ConnectionError, aiohttp.ClientPayloadError):
            pass  # the browser or the console has gone
        finally:
            self._streaming.pop(id(request), None)
        return passed


@asynccontextmanager
async def front(port: int, target: str, secret: str = "", tls: ssl.SSLContext | None = None) -> AsyncGenerator[Front]:
    """Run the proxy for the time of the block."""
    made = Front(target, secret, tls)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", made.forward)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield made
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)
