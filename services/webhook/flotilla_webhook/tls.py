"""TLS with a certificate that can change under a running server.

uvicorn reads its certificate once. The SSLContext that it was given stays ours: loading a new chain into it is enough,
every handshake from then on uses it, and connections that are open go on.
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
from flotilla_common.health import PortTaken
from flotilla_webhook.bounded import BoundedProtocol

_GRACE_SECONDS = 5  # an admission call that is running when we stop gets its answer; the apiserver waits up to 30
# Longer than the 90 s after which the apiserver's client drops an idle connection. The other way round, a call could be
# sent into a connection that we are just closing, and a POST is not sent again.
_IDLE_SECONDS = 120


class Certificate:
    """The server's TLS context."""

    def __init__(self, client_authority: str = "") -> None:
        """`client_authority`: a file with the authorities of clients' certificates; empty: nobody is asked for one.
        Raises OSError (ssl.SSLError) for a file that holds none."""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._authority = Path(client_authority) if client_authority else None
        self._believed = b""
        if self._authority is not None:  # who shows none may still ask for /healthz, and for conversions
            self.context.verify_mode = ssl.CERT_OPTIONAL
            self.believe()
        self.context.num_tickets = 0  # the apiserver resumes no session

    def believe(self) -> None:
        """Believe what is in the file of authorities by now; one that was there before is believed until the process
        ends. Raises OSError (ssl.SSLError) for a file that holds none."""
        if self._authority is None:
            return
        held = self._authority.read_bytes()
        if held != self._believed:
            self.context.load_verify_locations(cadata=held.decode(errors="replace"))
            self._believed = held

    def use(self, directory: Path) -> None:
        """Serve tls.crt and tls.key of the directory from now on. Raises OSError (ssl.SSLError) if they do not fit."""
        self.context.load_cert_chain(directory / "tls.crt", directory / "tls.key")


_FAREWELL_SECONDS, _LAST_WORDS_SECONDS = 1.0, 1.0
"""The seconds that a server which stops goes on: at first as always, until nobody is led to it any more, and then on
the connections that there are. With each answer it asks the client to use another connection."""


class _Server(uvicorn.Server):
    """uvicorn as a part of a process: signals belong to the process, not to it.

    Nothing is sent into a connection that is just being closed, because a POST is not sent again: each is closed by its
    client, after the next answer on it, as far as that comes in time.
    """

    def __init__(self, config: uvicorn.Config, clock: Clock) -> None:
        super().__init__(config)
        self._clock = clock

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say farewell to clients, and stop."""
        self.server_state.default_headers.append((b"connection", b"close"))
        await self._clock.sleep(_FAREWELL_SECONDS)
        for server in self.servers:
            server.close()
        await self._clock.sleep(_LAST_WORDS_SECONDS)  # connections in their handshake are not known yet
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def listen(port: int, host: str = "0.0.0.0") -> socket.socket:  # noqa: S104 - the apiserver comes from outside
    """The listening socket; a port of 0 takes a free one. Raises PortTaken."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as failure:
        sock.close()
        raise PortTaken(f"webhook port {port} on {host}: {failure.strerror}") from failure
    return sock


@asynccontextmanager
async def serving(
    app: FastAPI, certificate: Certificate, sock: socket.socket, clock: Clock
) -> AsyncGenerator[asyncio.Future[None]]:
    """Serve for the time of the block, and finish what is being answered at its end. Yields what ends with the
    server."""
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
    """Why GET https://localhost:<port>/healthz does not succeed; empty if it does. Trusts the CA file as it is now."""
    try:
        trust = ssl.create_default_context(cafile=ca_file)
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="localhost")
            try:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                status = await reader.readline()
            finally:
                writer.close()
            with contextlib.suppress(OSError):  # the answer is in; how the connection ends does not matter
                await writer.wait_closed()
    except (OSError, TimeoutError) as failure:
        return f"/healthz over TLS: {failure or type(failure).__name__}"
    return "" if b" 200 " in status else f"/healthz over TLS: {status.decode(errors='replace').strip()}"
