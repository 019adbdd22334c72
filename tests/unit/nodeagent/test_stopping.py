"""Hooks, their requests, and the journal of what was begun."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.containerrecreaterequest.types import (
    ContainerPort,
    HttpGetAction,
    HttpHeader,
    PreStop,
    SleepAction,
    TcpSocketAction,
)
from flotilla_nodeagent.cri.types import PORTS_ANNOTATION, PRE_STOP_ANNOTATION, Container, State
from flotilla_nodeagent.http_client import get_status
from flotilla_nodeagent.stop_journal import Entry, Journal
from flotilla_nodeagent.stopping import Hook, HookFailed, hook_of, port_of, run_hook
from tests.support.fake_clock import FakeClock

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
CONTAINER = Container(id="c1", state=State.RUNNING, sandbox="s1")


class Web:
    """A server with a fixed response."""

    def __init__(self) -> None:
        self.answer = b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nhello"
        self.endless = False  # it repeats the end of the answer for as long as anybody reads
        self.asked = b""
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        await writer.drain()
        with suppress(ConnectionError):
            while self.endless:
                writer.write(self.answer[-7000:])
                await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def web() -> AsyncIterator[Web]:
    made = Web()
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


class Sandbox:
    """A runtime that has the pod's address."""

    async def sandbox_ip(self, sandbox: str) -> str:
        assert sandbox == "s1"
        return "127.0.0.1"


async def run(handler: PreStop, *ports: ContainerPort) -> FakeClock:
    clock = FakeClock()
    await run_hook(Hook(handler, ports), Sandbox(), CONTAINER, clock)
    return clock


async def test_http_goes_to_the_pod_as_the_kubelet_would(web: Web) -> None:
    headers = [HttpHeader("X-One", "1\r\nInjected: yes"), HttpHeader("User-Agent", "mine")]
    action = HttpGetAction(path="quit", port="web", http_headers=headers)
    await run(PreStop(http_get=action), ContainerPort(name="web", container_port=web.port))
    lines = web.asked.decode().split("\r\n")
    assert lines[0] == "GET /quit HTTP/1.0"
    assert f"Host: 127.0.0.1:{web.port}" in lines
    assert "User-Agent: mine" in lines
    assert "Accept: */*" in lines
    assert not any(line.startswith("Injected") for line in lines)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/quit now", "/quit%20now"),
        ("/x HTTP/1.0\r\nInjected: yes\r\n", "/x%20HTTP/1.0%0D%0AInjected:%20yes%0D%0A"),
        ("/drain?after=5&all=%20yes", "/drain?after=5&all=%20yes"),
        ("/top#part", "/top"),
        ("/ä", "/%C3%A4"),
    ],
)
async def test_a_path_is_written_as_urls_are(web: Web, path: str, target: str) -> None:
    await run(PreStop(http_get=HttpGetAction(path=path, port=web.port)))
    lines = web.asked.decode().split("\r\n")
    assert lines[0] == f"GET {target} HTTP/1.0"
    assert not any(line.startswith("Injected") for line in lines)


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", ""),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "HTTP status 404"),
        (b"SSH-2.0-x\r\n\r\n", "not HTTP"),
        (b"", "not HTTP"),
    ],
    ids=["redirect", "404", "no HTTP", "nothing"],
)
async def test_answers(web: Web, answer: bytes, failure: str) -> None:
    web.answer = answer
    hook = PreStop(http_get=HttpGetAction(port=web.port))
    if failure:
        with pytest.raises(HookFailed, match=failure):
            await run(hook)
    else:
        await run(hook)


async def test_nobody_listens(unused_tcp_port: int) -> None:
    with pytest.raises(HookFailed):
        await run(PreStop(http_get=HttpGetAction(port=unused_tcp_port)))


async def test_a_body_is_cut(web: Web) -> None:
    web.answer, web.endless = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000, True
    async with asyncio.timeout(10):
        assert await get_status("127.0.0.1", web.port, "/") == 200


async def test_a_head_without_end_is_no_answer(web: Web) -> None:
    web.answer, web.endless = b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000, True
    async with asyncio.timeout(10):
        with pytest.raises(HookFailed, match="head of the answer"):
            await run(PreStop(http_get=HttpGetAction(port=web.port)))


async def test_sleep_and_tcp() -> None:
    assert (await run(PreStop(sleep=SleepAction(seconds=7)))).sleeps == [7]
    with pytest.raises(HookFailed, match="not supported"):
        await run(PreStop(tcp_socket=TcpSocketAction(port=1)))


@pytest.mark.parametrize(
    ("port", "number"), [(80, 80), ("8080", 8080), ("web", 81), ("other", None), (0, None), (70000, None)]
)
def test_ports(port: int | str, number: int | None) -> None:
    ports = [ContainerPort(name="web", container_port=81)]
    if number is None:
        with pytest.raises(ValueError, match="no port"):
            port_of(port, ports)
    else:
        assert port_of(port, ports) == number


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        ({}, None),
        ({PRE_STOP_ANNOTATION: "not JSON"}, None),
        (
            {
                PRE_STOP_ANNOTATION: '{"httpGet":{"path":"/q","port":"web"}}',
                PORTS_ANNOTATION: '[{"name":"web","containerPort":80}]',
            },
            Hook(
                PreStop(http_get=HttpGetAction(path="/q", port="web")), [ContainerPort(name="web", container_port=80)]
            ),
        ),
    ],
    ids=["none", "unreadable", "http"],
)
def test_the_kubelets_annotations(annotations: dict[str, str], wanted: Hook | None) -> None:
    assert hook_of(Container(id="c", state=State.RUNNING, annotations=annotations)) == wanted


def test_an_empty_handler_is_no_hook() -> None:
    assert Hook(PreStop()).empty
    assert not Hook(PreStop(sleep=SleepAction(seconds=1))).empty


def test_the_journal_outlives_the_process(tmp_path: Path) -> None:
    first = Journal(tmp_path / "j")
    first.load()
    first.put("uid/1", "app", Entry(container_id="c1", begun=BEGUN))
    first.put("uid2", "app", Entry(container_id="c2", begun=BEGUN, hook_done=True))
    first.forget("uid/1")
    (tmp_path / "j" / "bad+x.json").write_text("{")
    second = Journal(tmp_path / "j")
    second.load()
    assert second.causes() == {"uid2"}
    assert second.get("uid2", "app") == Entry(container_id="c2", begun=BEGUN, hook_done=True)


def test_without_a_folder_it_works_from_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    journal = Journal(tmp_path / "file")
    journal.load()
    journal.put("u", "app", Entry(container_id="c1", begun=BEGUN))
    assert journal.get("u", "app") is not None
    journal.forget("u")
    assert journal.get("u", "app") is None
