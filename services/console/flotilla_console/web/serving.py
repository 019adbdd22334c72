"""Runs uvicorn as a part of a process."""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from flotilla_common.health import PortTaken
from flotilla_console.access.certificates import CertificateProtocol

_GRACE_SECONDS = 2
"""Seconds that requests in progress have at the end; live streams end with them, and browsers connect again."""
_MAX_REQUESTS = 1000


class _Server(uvicorn.Server):
    """uvicorn without its own handling of signals: the process handles them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def listen(port: int, host: str = "") -> socket.socket:
    """Return a listening socket; port 0 takes a free one, no host means all addresses. Raises PortTaken."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as failure:
        sock.close()
        raise PortTaken(
            f"console port {port} on {host or 'all addresses'}: {os.strerror(failure.errno or 0)}"
        ) from failure
    return sock


@asynccontextmanager
async def serving(
    app: FastAPI, sock: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[asyncio.Future[None]]:
    """Serve during the block, without `tls` plain HTTP. Yields a future of the server's end."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        http=CertificateProtocol,
        ws="none",
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        limit_concurrency=_MAX_REQUESTS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    config.load()
    config.ssl = tls
    server = _Server(config)
    task = asyncio.ensure_future(server.serve(sockets=[sock]))
    try:
        yield asyncio.shield(task)
    finally:
        server.should_exit = True
        await task
