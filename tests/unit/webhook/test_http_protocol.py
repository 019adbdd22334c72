"""Connections that stay silent or never end are closed; requests get an answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from flotilla_webhook.server import http_server
from flotilla_webhook.server.http_server import BoundedProtocol

HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"


async def answers(scope: Any, receive: Any, send: Any) -> None:
    """Read the whole request first, as the webhook does."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.1)
    config = uvicorn.Config(answers, log_config=None, lifespan="off")
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BoundedProtocol(config, state, {}, loop), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@asynccontextmanager
async def connection(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def ends(reader: asyncio.StreamReader) -> bytes:
    """Return what arrives until the other side ends the connection."""
    async with asyncio.timeout(10):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


PARTS = {"nothing": b"", "half a head": HEAD[:20], "a head": HEAD, "half a body": HEAD + b"12345"}


@pytest.mark.parametrize("sent", PARTS.values(), ids=PARTS)
async def test_what_does_not_come_in_time_ends_the_connection(sent: bytes, port: int) -> None:
    async with connection(port) as (reader, writer):
        writer.write(sent)
        assert b"200 OK" not in await ends(reader)


async def test_an_answered_connection_stays(port: int) -> None:
    async with connection(port) as (reader, writer):
        for _ in range(3):
            writer.write(HEAD + b"1234567890")
            async with asyncio.timeout(10):
                assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(2) == b"ok"
            await asyncio.sleep(0.15)  # longer than a request may take: it has been answered


async def test_there_are_only_so_many(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 30)
    async with connection(port), connection(port) as (reader, _):
        assert await ends(reader) == b""
