"""TLS with a certificate that can change under a running server.

uvicorn reads its certificate once. But the SSLContext is ours: a new chain loaded into it is used by all later
handshakes, and open connections continue.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from flotilla_common.clock import Clock
from flotilla_webhook.server.http_server import BoundedProtocol

_GRACE_SECONDS = 5  # an admission call in progress at the stop gets its answer; the apiserver waits up to 30
# Longer than the 90 s after which the apiserver's client drops an idle connection. Otherwise a call could be sent into
# a connection that we are just closing, and a POST is not sent again.
_IDLE_SECONDS = 120

_CLOSE_HINT_SECONDS, _DRAIN_SECONDS = 1.0, 1.0
"""Seconds for which a stopping server continues: first as before, then without new connections.

In the first phase the endpoint is removed from the Service. Each answer asks the client to use another connection.
"""


class Certificate:
    """The server's TLS context."""

    def __init__(self, client_authority: str = "") -> None:
        """Create the context; `client_authority` is a file with the authorities of client certificates.

        Without it, no client certificate is requested. Raises OSError (ssl.SSLError) for a file without certificates.
        """
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._authority = Path(client_authority) if client_authority else None
        self._loaded = b""
        if self._authority is not None:  # clients without one may request /healthz and conversions
            self.context.verify_mode = ssl.CERT_OPTIONAL
            self.reload_authorities()
        self.context.num_tickets = 0  # the apiserver resumes no session

    def reload_authorities(self) -> None:
        """Load the file of authorities if it has changed; former ones stay trusted until the process ends.

        Raises OSError (ssl.SSLError) for a file without certificates.
        """
        if self._authority is None:
            return
        content = self._authority.read_bytes()
        if content != self._loaded:
            self.context.load_verify_locations(cadata=content.decode(errors="replace"))
            self._loaded = content

    def use(self, directory: Path) -> None:
        """Serve tls.crt and tls.key of the directory from now on. Raises OSError (ssl.SSLError) on a mismatch."""
        self.context.load_cert_chain(directory / "tls.crt", directory / "tls.key")


class _Server(uvicorn.Server):
    """uvicorn as a part of a process, which handles the signals itself.

    Connections are not closed under a request, because a POST is not sent again: each is closed by its client, after
    the next answer on it, if that comes in time.
    """

    def __init__(self, config: uvicorn.Config, clock: Clock) -> None:
        super().__init__(config)
        self._clock = clock

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ask clients to use other connections, then stop."""
        self.server_state.default_headers.append((b"connection", b"close"))
        await self._clock.sleep(_CLOSE_HINT_SECONDS)
        for server in self.servers:
            server.close()
        await self._clock.sleep(_DRAIN_SECONDS)  # covers connections that are still in their handshake
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serving(
    app: FastAPI, certificate: Certificate, sock: socket.socket, clock: Clock
) -> AsyncGenerator[asyncio.Future[None]]:
    """Serve during the block, and finish the requests in progress at its end. Yields a future of the server's end."""
    config = uvicorn.Config(
        app,
        ssl_context_factory=lambda _config, _default: certificate.context,
        log_config=None,
        access_log=False,
        http=BoundedProtocol,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = _Server(config, clock)
    task = asyncio.ensure_future(server.serve(sockets=[sock]))
    try:
        yield asyncio.shield(task)
    finally:
        server.should_exit = True
        await task


async def probe(port: int, ca_file: Path) -> str:
    """Return why GET https://localhost:<port>/healthz fails, or "". Trusts the CA file as it is now."""
    try:
        trust = ssl.create_default_context(cafile=ca_file)
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="localhost")
            try:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                status = await reader.readline()
            finally:
                writer.close()
            with contextlib.suppress(OSError):  # the answer is complete; errors of closing do not matter
                await writer.wait_closed()
    except (OSError, TimeoutError) as failure:
        return f"/healthz over TLS: {failure or type(failure).__name__}"
    return "" if b" 200 " in status else f"/healthz over TLS: {status.decode(errors='replace').strip()}"
