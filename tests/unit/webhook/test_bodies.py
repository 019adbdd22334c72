"""The limit of all bodies together: requests beyond it are answered 429, and room is freed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import cast

import msgspec
import pytest
import uvicorn
from fastapi import Request as HttpRequest
from prometheus_client import CollectorRegistry
from uvicorn.server import ServerState

from flotilla_common.api.admission import review
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.clock import SystemClock
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.server.http_server import BodyReader, BoundedProtocol, build
from flotilla_webhook.server.reviews import convert

REVIEW = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}})
LARGE = REVIEW.ljust(1000)
LARGER = 1 << 20


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not check():
            await SystemClock().sleep(0.001)


class Served:
    """The application behind a socket, with room for a body and a half."""

    def __init__(self) -> None:
        self.bodies = BodyReader(limit=1500)
        self.answers = asyncio.Event()
        self.answers.set()
        self.port = 0

    async def handle(self, _: Request) -> Answer:
        await self.answers.wait()
        return review.ALLOWED

    async def broken(self, _: Request) -> Answer:
        raise RuntimeError("boom")

    async def post(self, body: bytes, *, path: str = "/x", length: int = 0) -> tuple[bytes, asyncio.StreamWriter]:
        """Send the body, or the beginning of one of `length` bytes; the head of the answer, unless more is awaited."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body)
        if length:
            return b"", writer
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        return answer, writer


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    handlers = {"/x": made.handle, "/broken": made.broken}
    app = build(handlers, convert, Metrics(CollectorRegistry()), SystemClock(), made.bodies)
    config = uvicorn.Config(app, log_config=None, lifespan="off")
    config.load()
    loop, state = asyncio.get_running_loop(), ServerState()
    server = await loop.create_server(lambda: BoundedProtocol(config, state, {}, loop), "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


async def test_half_a_body_takes_its_room_until_its_sender_goes(served: Served) -> None:
    _, slow = await served.post(LARGE[:900], length=1000)
    await until(lambda: served.bodies.held == 900)
    refused, _ = await served.post(LARGE)
    assert refused.startswith(b"HTTP/1.1 429")
    assert b"retry-after: 1\r\n" in refused.lower()
    assert (await served.post(REVIEW))[0].startswith(b"HTTP/1.1 200"), "a small one finds room"
    slow.transport.abort()
    await until(lambda: served.bodies.held == 0)
    assert (await served.post(LARGE))[0].startswith(b"HTTP/1.1 200")


async def test_a_body_takes_its_room_until_it_is_answered(served: Served) -> None:
    served.answers.clear()
    answered = asyncio.create_task(served.post(LARGE))
    await until(lambda: served.bodies.held == 1000)
    assert (await served.post(LARGE))[0].startswith(b"HTTP/1.1 429")
    served.answers.set()
    assert (await answered)[0].startswith(b"HTTP/1.1 200")
    assert served.bodies.held == 0


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [(b"{".ljust(1000), "/x", b"400"), (LARGE, "/broken", b"200"), (b"{".ljust(1000), "/convert", b"400")],
    ids=["no JSON", "a handler that breaks", "no conversion"],
)
async def test_room_is_given_back_whatever_happens(served: Served, body: bytes, path: str, status: bytes) -> None:
    for _ in range(3):
        assert (await served.post(body, path=path))[0].split()[1] == status
    assert served.bodies.held == 0


class Sent:
    """A request as `BodyReader` looks at it."""

    def __init__(self, body: bytes) -> None:
        self.headers = {"content-type": "application/json"}
        self._body = body

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._body


async def test_large_bodies_are_worked_on_one_after_the_other_and_small_ones_beside_them() -> None:
    bodies = BodyReader()
    working: list[int] = []
    done = asyncio.Event()

    async def work(size: int) -> None:
        async with bodies.of(cast("HttpRequest", Sent(b" " * size))) as body, bodies.turn(body):
            working.append(len(body))
            await done.wait()

    async with asyncio.TaskGroup() as group:
        for size in (LARGER, LARGER, 100, 200):
            group.create_task(work(size))
        await until(lambda: len(working) == 3)
        assert sorted(working) == [100, 200, LARGER]
        done.set()
    assert working[-1] == LARGER
    assert bodies.held == 0
