"""Rounds of probes against servers on this machine that answer, are slow, or send too much (nodeagent.md §6.3)."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from flotilla_common.clock import SystemClock
from flotilla_nodeagent.cri.errors import CriError, NotFound, TimedOut
from flotilla_nodeagent.cri.types import CONTAINER_NAME_LABEL, Container, Executed, State
from flotilla_nodeagent.http_client import BODY_LIMIT, HEAD_LIMIT, REDIRECTS
from flotilla_nodeagent.probes import handlers
from flotilla_nodeagent.probes.definitions import Exec, Handler, HttpGet, Impossible, TcpSocket
from flotilla_nodeagent.probes.states import Outcome
from tests.support.certificates import Authority
from tests.support.fake_clock import FakeClock

HOST = "127.0.0.1"
CONTAINER = Container(id="c" * 64, state=State.RUNNING, labels={CONTAINER_NAME_LABEL: "game"})

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Runtime:
    """Answers one command."""

    def __init__(self, given: Executed | CriError) -> None:
        self.given = given
        self.asked: list[tuple[str, list[str], int, int]] = []

    async def execute(self, container_id: str, command: list[str], *, keep: int, seconds: int = 0) -> Executed:
        self.asked.append((container_id, command, keep, seconds))
        if isinstance(self.given, CriError):
            raise self.given
        return self.given


class Server:
    """The port of a server, and the requests that it received."""

    def __init__(self) -> None:
        self.port = 0
        self.heads: list[str] = []
        self.ended = asyncio.Event()


@asynccontextmanager
async def serving(serve: Serve | bytes, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Run a server that gives this answer to every request; bytes are the whole answer, with PORT in it replaced."""
    server = Server()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if callable(serve):
                await serve(reader, writer)
            else:
                writer.write(serve.replace(b"PORT", str(server.port).encode()))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            server.ended.set()
            writer.close()

    listening = await asyncio.start_server(answer, HOST, 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()


async def run(handler: Handler, *, timeout: int = 5, given: Executed | CriError | None = None) -> Outcome:
    runtime = Runtime(given or Executed(0))
    return await handlers.run(
        handler,
        container=CONTAINER,
        ip=HOST,
        timeout=timeout,
        runtime=runtime,  # type: ignore[arg-type]
        clock=SystemClock(),
    )


def answer(status: str, body: str = "", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (Executed(0, b"0 players", b"noise"), Outcome(True, "0 players")),
        (Executed(3, b"noise", b"bad"), Outcome(False, "bad")),  # example 27
        (Executed(1), Outcome(False, "")),
        (Executed(0, b"\xff\n"), Outcome(True, "\ufffd\n")),
        (TimedOut(f"exec in {CONTAINER.id}: timeout 1s exceeded"), Outcome(False, "exec in game: timeout 1s exceeded")),
    ],
)
async def test_commands(given: Executed | CriError, outcome: Outcome) -> None:
    assert await run(Exec(("a", "b")), given=given) == outcome


async def test_a_command_that_could_not_be_run_shows_nothing() -> None:
    with pytest.raises(NotFound):
        await run(Exec(("a",)), given=NotFound("no such container"))


async def test_a_command_is_limited() -> None:
    runtime = Runtime(Executed(0))
    await handlers.run(
        Exec(("a", "b")),
        container=CONTAINER,
        ip="",
        timeout=7,
        runtime=runtime,  # type: ignore[arg-type]
        clock=SystemClock(),
    )
    assert runtime.asked == [(CONTAINER.id, ["a", "b"], 10 << 10, 7)]


async def test_a_limit_that_passed_while_the_agent_stood_still_shows_nothing() -> None:
    clock = FakeClock()

    async def stopped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock.time += 60
        await asyncio.sleep(3)

    async with serving(stopped) as server:
        with pytest.raises(Impossible):
            await handlers.run(
                HttpGet("", server.port),
                container=CONTAINER,
                ip=HOST,
                timeout=1,
                runtime=Runtime(Executed(0)),  # type: ignore[arg-type]
                clock=clock,
            )


async def test_connections() -> None:
    async with serving(b"") as server:
        assert await run(TcpSocket(server.port)) == Outcome(True)
    with socket.socket() as taken:
        taken.bind((HOST, 0))  # without a listener
        port = taken.getsockname()[1]
        why = f"dial tcp {HOST}:{port}: connect: connection refused"
        assert await run(TcpSocket(port)) == Outcome(False, why)
        assert await run(HttpGet("/x y", port)) == Outcome(False, f'Get "http://{HOST}:{port}/x%20y": {why}')


async def test_a_connection_that_takes_too_long() -> None:
    with socket.socket() as full:
        full.bind((HOST, 0))
        full.listen(0)
        port = full.getsockname()[1]
        with socket.socket() as one, socket.socket() as two:
            for waiting in (one, two):
                waiting.setblocking(False)
                waiting.connect_ex((HOST, port))
            started = time.monotonic()
            outcome = await run(TcpSocket(port), timeout=1)
            assert outcome == Outcome(False, f"dial tcp {HOST}:{port}: i/o timeout")
            assert 0.9 < time.monotonic() - started < 3


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (answer("200 OK", "fine"), Outcome(True, "fine")),
        (answer("204 No Content"), Outcome(True)),
        (answer("399 Odd", "x"), Outcome(True, "Probe terminated redirects, Response body: x")),
        (answer("304 Not Modified"), Outcome(True, "Probe terminated redirects, Response body: ")),
        (answer("302 Found", "x"), Outcome(True, "Probe terminated redirects, Response body: x")),
        (answer("400 Bad Request"), Outcome(False, "HTTP probe failed with statuscode: 400")),
        (answer("503 Service Unavailable"), Outcome(False, "HTTP probe failed with statuscode: 503")),
        (answer("101 Switching Protocols"), Outcome(False, "HTTP probe failed with statuscode: 101")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + answer("200 OK", "a"), Outcome(True, "a")),
        (b"HTTP/1.0 200\nContent-Length: 9999\n\nshort", Outcome(True, "short")),
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", Outcome(True, "to the end")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\nabc", Outcome(True, "abc")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            Outcome(True, "abcde"),
        ),
    ],
)
async def test_answers(given: bytes, outcome: Outcome) -> None:
    async with serving(given) as server:
        assert await run(HttpGet("/", server.port)) == outcome


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 200 OK\r\nA: b", "EOF"),
        (b"SSH-2.0-OpenSSH\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 20 OK\r\n\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "malformed chunked encoding"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n", "malformed chunked encoding"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 2 * HEAD_LIMIT, f"a line of the answer is longer than {HEAD_LIMIT} bytes"),
        (
            b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * HEAD_LIMIT,
            f"the head of the answer is longer than {HEAD_LIMIT} bytes",
        ),
        (
            b"HTTP/1.1 100 Continue\r\nAaaaaaa: b\r\n\r\n" * 2000,
            f"the head of the answer is longer than {HEAD_LIMIT} bytes",
        ),
        (answer("302 Found", Location="http://[::1"), "the answer redirects to an invalid HTTP URL"),
        (answer("302 Found", Location="file:///etc/passwd"), "the answer redirects to an invalid HTTP URL"),
        (answer("302 Found", Location="http://127.0.0.1:99999/"), "the answer redirects to an invalid HTTP URL"),
        (answer("302 Found", Location="/again"), f"stopped after {REDIRECTS} redirects"),
    ],
)
async def test_what_is_no_answer(given: bytes, why: str) -> None:
    async with serving(given) as server:
        outcome = await run(HttpGet("/", server.port))
    assert outcome == Outcome(False, f'Get "http://{HOST}:{server.port}/": {why}')


@pytest.mark.parametrize("head", [b"", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 99999999999999999999\r\n"])
async def test_an_endless_body_is_cut_while_it_is_read(head: bytes) -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n" if b"chunked" in head else b"x" * 0x10000
        while True:
            writer.write(piece)
            await writer.drain()
            sent += len(piece)

    async with serving(endless) as server:
        outcome = await run(HttpGet("/", server.port))
        await asyncio.wait_for(server.ended.wait(), 5)
    assert outcome.succeeded
    assert outcome.message == "x" * BODY_LIMIT
    assert sent < 16 << 20  # what the kernel holds, and no more


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"])
async def test_a_slow_server(beginning: bytes) -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        await reader.read()

    async with serving(slow) as server:
        outcome = await run(HttpGet("/", server.port), timeout=1)
        await asyncio.wait_for(server.ended.wait(), 5)  # nothing of the probe is left
    why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert outcome == Outcome(False, f'Get "http://{HOST}:{server.port}/": {why}')


async def test_what_is_sent() -> None:
    async with serving(answer("200 OK")) as server:
        await run(HttpGet("/a?b=c d#e", server.port, headers=(("X", "1"), ("x", "2"))))
        await run(HttpGet("", server.port, headers=(("user-agent", "me"), ("ACCEPT", ""))))
        await run(HttpGet("http://elsewhere/x", server.port))
    first, second, third = server.heads
    assert first == (
        f"GET /a?b=c%20d HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nConnection: close\r\n"
        "User-Agent: kube-probe\r\nAccept: */*\r\nX: 1\r\nx: 2\r\n\r\n"
    )
    assert second == f"GET / HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nConnection: close\r\nuser-agent: me\r\n\r\n"
    assert third.startswith("GET /http://elsewhere/x HTTP/1.1\r\n")


async def test_a_path_splits_no_request() -> None:
    async with serving(answer("200 OK")) as server:
        for path in ("/a\r\nHost: b\r\n\r\nGET /c", "/\n", "/\x00", "/ä", "\r\n"):
            await run(HttpGet(path, server.port))
    assert len(server.heads) == 5
    for head in server.heads:
        line, host, *_ = head.split("\r\n")
        assert line.count(" ") == 2
        assert host == f"Host: {HOST}:{server.port}"


async def test_redirects_on_the_pod_are_followed() -> None:
    async with serving(answer("200 OK", "there")) as there:
        elsewhere = f"http://user@{HOST}:{there.port}/b?c"
        async with serving(answer("307 Temporary Redirect", Location=elsewhere)) as server:
            outcome = await run(HttpGet("/a", server.port, headers=(("X", "1"),)))
    assert outcome == Outcome(True, "there")
    (head,) = there.heads
    assert head.startswith(f"GET /b?c HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n")
    assert "X: 1\r\n" in head


@pytest.mark.parametrize(
    "location",
    [
        "http://localhost:{port}/",
        "//localhost:{port}/",
        "http://127.0.0.2:{port}/",
        "http://127.1:{port}/",
        "http://127.0.0.1.example:{port}/",
        "http://127.0.0.1@127.0.0.2:{port}/",
        "https://example.com",
    ],
)
async def test_redirects_elsewhere_are_not(location: str) -> None:
    """Count redirects to other hosts as success, without a request to them."""
    async with serving(answer("200 OK")) as other:
        moved = answer("302 Found", "moved", Location=location.format(port=other.port))
        async with serving(moved) as server:
            outcome = await run(HttpGet("/", server.port))
        assert outcome == Outcome(True, "Probe terminated redirects, Response body: moved")
        assert other.heads == []


async def test_a_redirect_splits_no_request() -> None:
    async with serving(answer("200 OK")) as there:
        moved = answer("302 Found", Location=f"http://{HOST}:{there.port}/a b\x00\tc?d e")
        async with serving(moved) as server:
            assert (await run(HttpGet("/", server.port))).succeeded
    (head,) = there.heads
    assert head.split("\r\n")[0].count(" ") == 2


async def test_certificates_are_not_verified(tmp_path: Path) -> None:
    async with serving(answer("200 OK", "secret"), Authority(tmp_path).server_context()) as server:
        assert await run(HttpGet("/", server.port, secure=True)) == Outcome(True, "secret")
        plain = await run(HttpGet("/", server.port))
    assert not plain.succeeded
