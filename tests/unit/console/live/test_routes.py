"""The live stream over HTTP."""

import json
from collections.abc import AsyncGenerator

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from flotilla_common.kube.interface import Unreachable
from flotilla_console.live.hub import MAX_STREAMS_PER_USER
from flotilla_console.live.routes import CHECK_SECONDS, MAX_BODY, UNCHECKED_SECONDS
from tests.unit.console.site import SmallSite, Words


async def opened(site: SmallSite, user: str = "alice", last: str = "") -> Response:
    headers = [(b"user", user.encode()), (b"last-event-id", last.encode())]
    return await site.site.live.stream(Request({"type": "http", "method": "GET", "path": "/live", "headers": headers}))


def events_of(answer: Response) -> AsyncGenerator[bytes]:
    assert isinstance(answer, StreamingResponse)
    assert isinstance(answer.body_iterator, AsyncGenerator)
    return answer.body_iterator


def data_of(events: bytes) -> list[dict]:
    return [json.loads(line[6:]) for line in events.decode().split("\n") if line.startswith("data: ")]


async def show(site: SmallSite, stream: str, *paths: str, user: str = "alice") -> int:
    answer = await site.client.post(f"/live/{stream}/views", json={"paths": paths}, headers={"user": user})
    return answer.status_code


async def test_a_browser_opens_a_stream_and_names_its_pages() -> None:
    site = SmallSite("a")
    answer = await opened(site)
    events = events_of(answer)
    stream = data_of(await anext(events))[0]["stream"]
    assert await show(site, stream, "/") == 204
    await site.hub.render_all()
    assert data_of(await anext(events))[0]["page"]["title"] == "Words"
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"


async def test_it_goes_on_after_the_last_event_of_the_browser() -> None:
    site = SmallSite("a")
    first = await anext(events_of(await opened(site)))
    stream = data_of(first)[0]["stream"]
    await show(site, stream, "/")
    await site.hub.render_all()
    again = await anext(events_of(await opened(site, last=f"{stream}.2")))
    assert b"event: page" in again
    assert b"event: hello" not in again


@pytest.mark.parametrize(
    "last", ["", "x", ".", "unknown.3", "{stream}.99", "{stream}.-1", "{stream}.²", "{stream}.1e3"]
)
async def test_where_it_cannot_go_on_it_begins(last: str) -> None:
    site = SmallSite("a")
    stream = data_of(await anext(events_of(await opened(site))))[0]["stream"]
    begun = await anext(events_of(await opened(site, last=last.format(stream=stream))))
    assert begun.startswith(b"id: ")
    assert b"event: hello" in begun


async def test_a_stream_belongs_to_its_user() -> None:
    site = SmallSite("a")
    stream = data_of(await anext(events_of(await opened(site))))[0]["stream"]
    assert await show(site, stream, "/", user="bob") == 404
    taken = data_of(await anext(events_of(await opened(site, "bob", f"{stream}.0"))))[0]["stream"]
    assert taken != stream


async def test_without_identity_there_is_no_stream() -> None:
    site = SmallSite()
    assert (await opened(site, "nobody")).status_code == 401
    assert await show(site, "x", "/", user="nobody") == 401


async def test_who_signs_out_is_cut_off() -> None:
    site = SmallSite("a")
    events = events_of(await opened(site))
    await anext(events)
    site.gate.users.clear()
    site.clock.time += CHECK_SECONDS
    site.hub.beat()
    last = await anext(events)
    assert last.startswith(b"event: signin")
    assert data_of(last) == [{"reason": "Who are you?", "href": "/sign-in"}]
    assert [event async for event in events] == []
    assert site.hub._streams == {}


async def test_withdrawn_rights_apply_to_open_streams() -> None:
    site = SmallSite("a", "secret")
    events = events_of(await opened(site))
    await show(site, data_of(await anext(events))[0]["stream"], "/")
    await site.hub.render_all()
    assert b"secret" in await anext(events)
    site.rights.own["alice"] = Words("a")
    site.clock.time += CHECK_SECONDS
    site.hub.beat()
    assert b"secret" not in await anext(events)
    await site.hub.render_all()
    page = data_of(await anext(events))[0]["page"]
    assert [row["key"] for row in page["blocks"][0]["rows"]] == ["a"]


async def test_an_unreachable_apiserver_ends_a_stream_only_after_a_while() -> None:
    site = SmallSite("a")
    events = events_of(await opened(site))
    await anext(events)
    site.gate.failure = Unreachable("gone")
    site.clock.time += CHECK_SECONDS
    site.hub.beat()
    assert (await anext(events)).count(b"event: beat") == 1
    site.clock.time += UNCHECKED_SECONDS
    site.hub.beat()
    assert b"event: signin" in await anext(events)


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"paths":["/"]}', "application/json", 404),
        (b'{"paths":["/"]}', "text/plain", 415),
        (b"{", "application/json", 400),
        (b'{"paths":[1]}', "application/json", 400),
        (b'{"paths":null}', "application/json", 400),
        (b'{"paths":["' + b"x" * MAX_BODY + b'"]}', "application/json", 400),
    ],
)
async def test_bodies(body: bytes, content_type: str, status: int) -> None:
    site = SmallSite()
    answer = await site.client.post("/live/unknown/views", content=body, headers={"content-type": content_type})
    assert answer.status_code == status


async def test_too_many_streams_are_refused() -> None:
    site = SmallSite()
    answers = [await opened(site) for _ in range(MAX_STREAMS_PER_USER + 1)]
    assert [answer.status_code for answer in answers[-2:]] == [200, 429]
