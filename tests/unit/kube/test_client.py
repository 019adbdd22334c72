"""The client against a small HTTP server: requests, and the handling of answers and of their absence."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import JOB, NODE, POD
from flotilla_common.kube import client
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import ApiConfig
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.kube.watch import ends_list
from tests.support.cluster import eventually


class Apiserver:
    """Gives the answers that the test prepares, and records requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes, dict[str, str]]] = []
        self.answers: list[web.Response | float] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.raw_path, await request.read(), dict(request.headers)))
        answer = self.answers.pop(0) if self.answers else web.Response(body=b"{}")
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            return web.Response()
        return answer

    @property
    def asked(self) -> tuple[str, str]:
        return self.requests[-1][:2]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[tuple[Apiserver, str]]:
    apiserver, app = Apiserver(), web.Application()
    app.router.add_route("*", "/{tail:.*}", apiserver.handle)
    async with TestServer(app) as running:
        yield apiserver, str(running.make_url("")).rstrip("/")


class Tokens:
    """A credential with a further token for each refusal."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def authorization(self) -> str:
        return f"Bearer {self.tokens[0]}"

    def reject(self) -> None:
        self.tokens.pop(0)


@pytest_asyncio.fixture
async def api(server: tuple[Apiserver, str]) -> AsyncIterator[KubeClient]:
    config = ApiConfig(server=server[1], credential=Tokens("t"))
    client = KubeClient(config, user_agent="kruise-manager/x", timeout=0.5)
    yield client
    await client.close()


def status(code: int, reason: str, message: str, **headers: str) -> web.Response:
    body = msgspec.json.encode({"kind": "Status", "code": code, "reason": reason, "message": message})
    return web.Response(status=code, body=body, headers=headers)


async def test_requests(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    apiserver = server[0]
    await api.get(POD, "ns", "web-0")
    assert apiserver.asked == ("GET", "/api/v1/namespaces/ns/pods/web-0")
    headers = apiserver.requests[-1][3]
    assert (headers["Authorization"], headers["User-Agent"]) == ("Bearer t", "kruise-manager/x")
    assert "Accept-Encoding" not in headers
    await api.get(CLONE_SET, "ns", "a", "scale")
    assert apiserver.asked == ("GET", "/apis/apps.kruise.io/v1beta1/namespaces/ns/clonesets/a/scale")
    await api.list(NODE, label_selector="a in (b, c)", limit=5, token="x=")
    assert apiserver.asked == ("GET", "/api/v1/nodes?labelSelector=a%20in%20%28b%2C%20c%29&limit=5&continue=x%3D")
    assert apiserver.requests[-1][3]["Accept"] == "application/json"
    await api.list(POD, metadata_only=True)
    assert "as=PartialObjectMetadataList;" in apiserver.requests[-1][3]["Accept"]
    await api.patch(POD, "ns", "a", b"{}", "application/merge-patch+json", params={"fieldManager": "f"})
    assert apiserver.asked == ("PATCH", "/api/v1/namespaces/ns/pods/a?fieldValidation=Ignore&fieldManager=f")
    assert apiserver.requests[-1][3]["Content-Type"] == "application/merge-patch+json"
    await api.create(POD, "ns", b"{}", dry_run=True)
    assert apiserver.asked == ("POST", "/api/v1/namespaces/ns/pods?fieldValidation=Ignore&dryRun=All")
    await api.create(POD, "ns", b"{}")
    assert apiserver.asked == ("POST", "/api/v1/namespaces/ns/pods?fieldValidation=Ignore")
    await api.replace(POD, "ns", "a", b"{}", "status")
    assert apiserver.asked == ("PUT", "/api/v1/namespaces/ns/pods/a/status?fieldValidation=Ignore")
    await api.delete(POD, "ns", "a", uid="u", resource_version="5")
    assert msgspec.json.decode(apiserver.requests[-1][2]) == {"preconditions": {"uid": "u", "resourceVersion": "5"}}
    await api.delete(JOB, "ns", "a")  # its pods would stay
    assert msgspec.json.decode(apiserver.requests[-1][2]) == {"propagationPolicy": "Background"}


async def test_a_page(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    body = b'{"metadata":{"resourceVersion":"7","continue":"more"},"items":[{"a":1},{"b":2}]}'
    server[0].answers = [web.Response(body=body), web.Response(body=b'{"metadata":{},"items":null}')]
    page = await api.list(POD)
    assert ([bytes(item) for item in page.items], page.resource_version, page.next_token) == (
        [b'{"a":1}', b'{"b":2}'],
        "7",
        "more",
    )
    assert (await api.list(POD)).items == []


@pytest.mark.parametrize(
    ("answer", "code", "reason", "message", "retry_after"),
    [
        (status(409, "Conflict", "busy"), 409, "Conflict", "busy", 0.0),
        (status(429, "TooManyRequests", "slow", **{"Retry-After": "2"}), 429, "TooManyRequests", "slow", 2.0),
        (web.Response(status=502, text="<html>bad gateway"), 502, "", "<html>bad gateway", 0.0),
        (web.Response(status=503), 503, "", "HTTP 503 ", 0.0),
        (web.Response(status=302, headers={"Location": "/x"}), 302, "", "HTTP 302 ", 0.0),
    ],
    ids=["conflict", "throttled", "a proxy's page", "nothing", "redirect"],
)
async def test_errors(
    api: KubeClient,
    server: tuple[Apiserver, str],
    answer: web.Response,
    code: int,
    reason: str,
    message: str,
    retry_after: float,
) -> None:
    server[0].answers = [answer]
    with pytest.raises(ApiError) as error:
        await api.get(POD, "ns", "a")
    found = error.value
    assert (found.code, found.reason, found.message, found.retry_after) == (code, reason, message, retry_after)


async def test_a_refused_token_is_replaced_once(server: tuple[Apiserver, str]) -> None:
    tokens = Tokens("old", "new", "never")
    client = KubeClient(ApiConfig(server=server[1], credential=tokens), user_agent="x")
    server[0].answers = [status(401, "Unauthorized", ""), web.Response(body=b"1")]
    assert await client.get(POD, "ns", "a") == b"1"
    assert [request[3]["Authorization"] for request in server[0].requests] == ["Bearer old", "Bearer new"]
    server[0].answers = [status(401, "Unauthorized", "no")] * 1 + [status(401, "Unauthorized", "no")]
    with pytest.raises(ApiError):
        await client.get(POD, "ns", "a")
    await client.close()


async def test_no_answer_in_time_is_an_unknown_outcome(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    server[0].answers = [1.0]
    with pytest.raises(Unreachable) as error:
        await api.create(POD, "ns", b"{}")
    assert error.value.sent


async def test_something_else_than_a_list_is_no_answer(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    server[0].answers = [web.Response(body=b"<html>the gateway is tired</html>")]
    with pytest.raises(Unreachable, match="LIST of pods did not return a list"):
        await api.list(POD)


async def test_no_connection_is_surely_not_sent() -> None:
    client = KubeClient(ApiConfig(server="http://127.0.0.1:1", credential=Tokens("t")), user_agent="x")
    with pytest.raises(Unreachable) as error:
        await client.create(POD, "ns", b"{}")
    assert not error.value.sent
    await client.close()


async def test_a_watch_begins_with_a_bookmark(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"8"}}}\n'
    server[0].answers = [web.Response(body=line)]
    events = [event async for event in api.watch(POD, "7", timeout=30)]
    assert [(event.type, msgspec.json.decode(event.object)["metadata"]["resourceVersion"]) for event in events] == [
        ("BOOKMARK", "7"),
        ("ADDED", "8"),
    ]
    wanted = "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=30"
    assert server[0].asked == ("GET", wanted)


async def test_watches_keep_no_request_waiting(
    api: KubeClient, server: tuple[Apiserver, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CONNECTIONS", 1)
    server[0].answers = [30.0, 30.0]
    watches = [asyncio.ensure_future(anext(aiter(api.watch(POD, "7")))) for _ in range(2)]
    await eventually(lambda: len(server[0].requests) == 2, 5)
    assert await api.get(POD, "ns", "a") == b"{}"
    for watch in watches:
        watch.cancel()
    await asyncio.gather(*watches, return_exceptions=True)


async def test_a_refused_watch_has_no_events(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    server[0].answers = [status(410, "Expired", "too old")]
    with pytest.raises(ApiError) as error:
        await anext(aiter(api.watch(POD, "7")))
    assert error.value.code == 410


async def test_the_way_may_lead_through_a_proxy(server: tuple[Apiserver, str]) -> None:
    config = ApiConfig(server="http://kube.invalid", credential=Tokens("t"), proxy=server[1])
    client = KubeClient(config, user_agent="x")
    assert await client.get(POD, "ns", "a") == b"{}"
    assert server[0].requests[0][3]["Host"] == "kube.invalid"
    await client.close()


async def test_a_streaming_list(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    end = b'{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
    server[0].answers = [web.Response(body=b'{"type":"ADDED","object":{"a":1}}\n' + end)]
    events = [event async for event in api.stream(POD, namespace="ns", field_selector="metadata.name=a", timeout=9)]
    assert [(event.type, ends_list(event)) for event in events] == [("ADDED", False), ("BOOKMARK", True)]
    path, _, query = server[0].asked[1].partition("?")
    assert path == "/api/v1/namespaces/ns/pods"
    assert query.split("&") == [
        "watch=1",
        "allowWatchBookmarks=true",
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
        "fieldSelector=metadata.name%3Da",
        "timeoutSeconds=9",
    ]


@pytest.mark.parametrize("told", [b',"shardInfo":{"selector":"s"}', b""])
async def test_an_apiserver_with_shards_says_so_in_lists(
    api: KubeClient, server: tuple[Apiserver, str], told: bytes
) -> None:
    server[0].answers = [web.Response(body=b'{"metadata":{"resourceVersion":"7"' + told + b'},"items":[]}')]
    page = await api.list(POD, shard_selector="s")
    assert page.sharded is bool(told)
    assert server[0].asked[1].endswith("?shardSelector=s")


async def test_watches_and_streams_of_a_shard_ask_for_it(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    server[0].answers = [web.Response(), web.Response()]
    for events in (api.watch(POD, "7", shard_selector="s"), api.stream(POD, shard_selector="s")):
        assert [event.type for event in [event async for event in events]] in (["BOOKMARK"], [])
        assert "shardSelector=s" in server[0].asked[1].split("&")


async def test_a_refused_and_a_broken_streaming_list(api: KubeClient, server: tuple[Apiserver, str]) -> None:
    server[0].answers = [status(422, "Invalid", "forbidden"), web.Response(body=b'{"type":"ADDED","obj')]
    with pytest.raises(ApiError) as refused:
        await anext(api.stream(POD))
    assert refused.value.code == 422
    with pytest.raises(Unreachable, match="within an event"):
        await anext(api.stream(POD))
