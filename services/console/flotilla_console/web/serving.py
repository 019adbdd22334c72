"""Runs uvicorn as a part of a process."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from flotilla_console.access.certificates import CertificateProtocol

_GRACE_SECONDS = 2
"""Seconds that requests in progress have at the end; live streams end with them, and browsers connect again."""
_MAX_REQUESTS = 1000


class _Server(uvicorn.Server):
    """uvicorn without its own handling of signals: the process handles them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


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
