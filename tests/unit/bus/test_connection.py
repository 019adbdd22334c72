"""A client's messages before the server is authenticated, and servers that it refuses to use."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

from flotilla_common.bus import connection as connections
from flotilla_common.bus.connection import Connection, OpenBusError
from flotilla_common.bus.credentials import authority_of
from flotilla_common.clock import SystemClock
from tests.support.certificates import Authority
from tests.support.cluster import eventually

INFO = {"server_id": "x", "version": "2.15.0", "max_payload": 1048576, "headers": True}
GUARDED = INFO | {"auth_required": True}


ENCRYPTED = GUARDED | {"tls_required": True}


class Server:
    """A server that identifies itself, and records the answers of clients."""

    def __init__(self, info: dict[str, object]) -> None:
        self.info = info
        self.heard = b""
        self.met = 0
        self.left = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        self._writers.append(writer)
        writer.write(b"INFO " + msgspec.json.encode(self.info) + b"\r\n")
        while data := await reader.read(4096):
            self.heard += data
            if b"PING\r\n" in data:
                writer.write(b"PONG\r\n")
        writer.close()
        self.left.set()

    def cut(self) -> None:
        """End all connections."""
        for writer in self._writers:
            writer.close()


class Faltering(Server):
    """Breaks off one connection in the middle of its beginning."""

    def __init__(self, number: int, at: bytes, ends: bool) -> None:
        """Prepare. `at`: the last input on connection `number`, which the server then ends or leaves open."""
        super().__init__(GUARDED)
        self._number = number
        self._at = at
        self._ends = ends

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.met + 1 != self._number:
            await super().serve(reader, writer)
            return
        self.met += 1
        self._writers.append(writer)
        info = GUARDED if self._at else ENCRYPTED
        writer.write(b"INFO " + msgspec.json.encode(info) + b"\r\n")
        await (reader.readuntil(self._at) if self._at else reader.read(1))
        if self._ends:
            writer.close()


@asynccontextmanager
async def meeting(
    info: dict[str, object], scheme: str = "nats", *, creds: str = "", allow_open: bool = False
) -> AsyncGenerator[tuple[Server, Connection]]:
    """Run a server, and a client that connects to it."""
    async with visiting(Server(info), scheme, creds=creds, allow_open=allow_open) as both:
        yield both


Visited = TypeVar("Visited", bound=Server)


@asynccontextmanager
async def visiting(
    there: Visited, scheme: str = "nats", *, creds: str = "", allow_open: bool = False
) -> AsyncGenerator[tuple[Visited, Connection]]:
    """Connect a client to this server."""
    listening = await asyncio.start_server(there.serve, "127.0.0.1", 0)
    url = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    connection = Connection([url], name="x", creds=creds, clock=SystemClock(), allow_open=allow_open)
    try:
        async with asyncio.timeout(10):
            yield there, connection
    finally:
        await connection.close()
        there.cut()
        listening.close()


@pytest.fixture
def token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text("secret-token", encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(("scheme", "logs_in"), [("tls", False), ("nats", True)])
async def test_a_login_never_leaves_in_clear_where_tls_was_asked_for(scheme: str, logs_in: bool, token: str) -> None:
    """A server, or an attacker in between, may omit `tls_required`."""
    async with meeting(GUARDED, scheme, creds=token) as (server, connection):
        connection.start()
        if logs_in:
            await connection.ready(5)
        else:
            await server.left.wait()
    assert (b"secret-token" in server.heard) == logs_in


async def test_a_bus_that_lets_anybody_in_is_refused_without_a_word(token: str) -> None:
    async with meeting(INFO, creds=token) as (server, connection):
        with pytest.raises(OpenBusError, match=r"accepts clients .* allow it with --allow-open-bus"):
            await connection.refused()
        await server.left.wait()
        assert not connection.connected
        assert "--allow-open-bus" in connection.trouble
    assert server.heard == b""


async def test_it_is_used_with_a_warning_where_that_is_allowed() -> None:
    with capture_logs() as log:
        async with meeting(INFO, allow_open=True) as (server, connection):
            looking = asyncio.create_task(connection.refused())
            await connection.ready(5)
            assert b"CONNECT" in server.heard
            assert not looking.done()
            looking.cancel()
    [warning] = [line for line in log if line["log_level"] == "warning" and "without credentials" in line["event"]]
    assert "--allow-open-bus" in warning["event"]


async def test_one_that_is_found_open_later_counts_as_away() -> None:
    """An attacker in between must not be able to end services."""
    async with meeting(GUARDED) as (server, connection):
        looking = asyncio.create_task(connection.refused())
        await connection.ready(5)
        server.info = INFO
        heard = server.heard
        server.cut()
        await eventually(lambda: server.met > 1 and "accepts clients without" in connection.trouble, 5)
        assert not looking.done()
        assert not connection.connected
        assert server.heard == heard
        looking.cancel()


@pytest.mark.parametrize(
    ("servers", "believed"),
    [
        pytest.param(["tls://10.0.0.1:4222"], True, id="TLS"),
        pytest.param(["nats://10.0.0.1:4222"], True, id="elsewhere"),
        pytest.param(["bus.example:4222"], True, id="without a scheme"),
        pytest.param(["nats://127.0.0.1:4222", "nats://10.0.0.1:4222"], True, id="one of them elsewhere"),
        pytest.param(["tls://127.0.0.1:4222"], True, id="TLS on this machine"),
        pytest.param(["nats://127.0.0.1:4222", "localhost:4222", "nats://[::1]:4222"], False, id="this machine"),
    ],
)
def test_credentials_say_whose_certificate_the_bus_shows(tmp_path: Path, servers: list[str], believed: bool) -> None:
    creds = tmp_path / "n1.creds"
    creds.write_text("seed\n" + Authority(tmp_path).file.read_text())
    assert authority_of(str(creds), servers) == (str(creds) if believed else "")


def test_credentials_that_say_nothing_of_it(tmp_path: Path, token: str) -> None:
    for creds in ("", token, str(tmp_path)):
        assert authority_of(creds, ["tls://10.0.0.1:4222"]) == ""


@pytest.mark.parametrize("number", [1, 2], ids=["first", "again"])
@pytest.mark.parametrize(
    ("at", "ends"),
    [(b"", True), (b"", False), (b"PING\r\n", True), (b"PING\r\n", False)],
    ids=["handshake-ends", "handshake-hangs", "login-ends", "login-hangs"],
)
async def test_a_connection_that_breaks_off_at_its_beginning_is_begun_again(
    number: int, at: bytes, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nats-py waits forever for the end of a connection whose TLS handshake failed: the client is replaced then."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(connections, "GIVE_UP_SECONDS", 0.6)
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(connections, "CLOSE_SECONDS", 0.1)
    attached: list[object] = []

    async def on_client(client: object) -> None:
        attached.append(client)

    async with visiting(Faltering(number, at, ends)) as (server, connection):
        await connection.attach(on_client)
        connection.start()
        if number == 2:
            await eventually(lambda: connection.connected, 5)
            server.cut()
        await eventually(lambda: connection.connected and server.met > number, 8)
        assert attached[-1] is connection.now()
        assert connection.now().is_connected


async def test_a_client_that_swallows_its_cancellation_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """nats-py does so while it waits for its own reconnecting to end, and may wait for the socket ever after."""
    monkeypatch.setattr(connections, "CLOSE_SECONDS", 0.01)
    monkeypatch.setattr(connections, "CANCEL_SECONDS", 0.01)
    cancelled = 0
    really = Client.close

    async def close(client: Client) -> None:
        nonlocal cancelled
        while cancelled < 2:
            try:
                await asyncio.Future()
            except asyncio.CancelledError:
                cancelled += 1
        await really(client)

    async with meeting(GUARDED) as (_server, connection):
        await connection.ready(5)
        monkeypatch.setattr(Client, "close", close)
        closing = asyncio.create_task(connection.close())
        await asyncio.wait((closing,), timeout=5)
        assert closing.done()


async def test_a_farewell_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    really = Client.close

    async def close(client: Client) -> None:
        await really(client)
        raise OSError("no route")

    with capture_logs() as log:
        async with meeting(GUARDED) as (_server, connection):
            await connection.ready(5)
            monkeypatch.setattr(Client, "close", close)
            await connection.close()
    assert [line["error"] for line in log if "closing the bus" in line["event"]] == ["no route"]
