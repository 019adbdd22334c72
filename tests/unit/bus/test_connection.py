"""What a client tells a server before it knows whom it talks to."""

import asyncio
from pathlib import Path

import pytest

from flotilla_common.bus.connection import Connection
from flotilla_common.clock import SystemClock

INFO = b'INFO {"server_id":"x","version":"2.15.0","max_payload":1048576,"auth_required":true}\r\n'


@pytest.mark.parametrize(("scheme", "logs_in"), [("tls", False), ("nats", True)])
async def test_a_login_never_leaves_in_clear_where_tls_was_asked_for(
    scheme: str, logs_in: bool, tmp_path: Path
) -> None:
    """A server, or somebody in between, that does not say `tls_required`."""
    heard, tried = list[bytes](), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(INFO)
        heard.append(await reader.read(4096))
        tried.set()
        writer.close()

    token = tmp_path / "token"
    token.write_text("secret-token", encoding="utf-8")
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = Connection([f"{scheme}://127.0.0.1:{port}"], name="x", creds=str(token), clock=SystemClock())
    connection.start()
    async with asyncio.timeout(10):
        await tried.wait()
    await connection.close()
    server.close()
    assert (b"secret-token" in b"".join(heard)) == logs_in
