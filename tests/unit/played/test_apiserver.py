"""The stand-in as the services' own client sees it."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing

import msgspec
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import LEASE, POD
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import ApiConfig
from flotilla_common.kube.interface import ApiError, Page, WatchEvent, pages
from tests.perf.played.apiserver import Apiserver
from tests.perf.played.collection import HISTORY
from tests.perf.played.population import Population, Sizes
from tests.perf.played.recording import recorded
from tests.perf.played.world import World
from tests.support.rest import MERGE
from tests.testkit.documents import Json, typed

pytestmark = pytest.mark.asyncio
SIZES = Sizes(sets=2, pods_each=5, nodes=3)


class NoLogin:
    """A credential that the stand-in does not check."""

    async def authorization(self) -> str:
        return "Bearer none"

    def reject(self) -> None:
        raise AssertionError("refused")


@pytest.fixture(scope="module")
def population() -> Population:
    return Population(recorded(), SIZES)


@pytest.fixture
def world(population: Population) -> World:
    return World(population)


@pytest_asyncio.fixture
async def api(world: World) -> AsyncIterator[KubeClient]:
    app = web.Application()
    app.add_routes(Apiserver(world.collections, world.last_version, world.settle).routes())
    async with TestServer(app) as running:
        server = str(running.make_url("")).rstrip("/")
        client = KubeClient(ApiConfig(server=server, credential=NoLogin()), user_agent="test")
        yield client
        await client.close()


def names(found: list[Page]) -> list[str]:
    return [msgspec.json.decode(item)["metadata"]["name"] for page in found for item in page.items]


async def code_of(request: Awaitable[object]) -> int:
    with pytest.raises(ApiError) as refused:
        await request
    return refused.value.code


async def test_a_list_in_pages_has_every_pod_once(api: KubeClient) -> None:
    found = [page async for page in pages(api, POD, limit=3)]
    assert [len(page.items) for page in found] == [3, 3, 3, 1]
    assert len(set(names(found))) == SIZES.pods
    assert {page.resource_version for page in found} == {found[0].resource_version}


async def test_a_list_of_a_namespace(api: KubeClient, population: Population) -> None:
    namespace, name = population.sets[0]
    assert names([await api.list(CLONE_SET, namespace)]) == [name]
    assert names([await api.list(CLONE_SET, field_selector=f"metadata.name={name}")]) == [name]


async def test_a_watch_begins_after_the_list(api: KubeClient, world: World) -> None:
    page = await api.list(POD)
    version = world.pods.change(0)
    async with aclosing(api.watch(POD, page.resource_version)) as watch:
        await anext(watch)  # the bookmark of the client itself
        assert version_of(await anext(watch)) == ("MODIFIED", str(version))
        version = world.pods.change(1)
        assert version_of(await anext(watch)) == ("MODIFIED", str(version))


def version_of(event: WatchEvent) -> tuple[str, str]:
    return event.type, msgspec.json.decode(event.object)["metadata"]["resourceVersion"]


async def test_a_watch_of_a_forgotten_version_is_refused(api: KubeClient, world: World) -> None:
    version = world.last_version()
    for number in range(HISTORY + 2):
        world.pods.change(number % SIZES.pods)
    async with aclosing(api.watch(POD, str(version))) as watch:
        assert await code_of(anext(watch)) == 410


async def test_streaming_lists_are_refused_as_by_an_apiserver_without_them(api: KubeClient) -> None:
    path = f"{POD.path()}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    assert await code_of(api.raw("GET", path)) == 422


def lease(**more: object) -> bytes:
    return msgspec.json.encode(
        typed(LEASE, "l", "system", labels={"role": "shard"}, spec={"holderIdentity": "a"}, **more)
    )


async def test_leases_are_written_by_version(api: KubeClient) -> None:
    made: Json = msgspec.json.decode(await api.create(LEASE, "system", lease()))
    assert await code_of(api.create(LEASE, "system", lease())) == 409
    version = made["metadata"]["resourceVersion"]
    await api.replace(LEASE, "system", "l", lease(version=version))
    assert await code_of(api.replace(LEASE, "system", "l", lease(version=version))) == 409
    assert names([await api.list(LEASE, "system", label_selector="role=shard")]) == ["l"]
    assert names([await api.list(LEASE, "system", label_selector="role=member")]) == []
    assert await code_of(api.delete(LEASE, "system", "l", resource_version=version)) == 409
    await api.delete(LEASE, "system", "l")
    assert await code_of(api.get(LEASE, "system", "l")) == 404


async def test_a_patched_status_is_read_back(api: KubeClient, population: Population) -> None:
    namespace, name = population.sets[0]
    body = msgspec.json.encode({"status": {"readyReplicas": 2}})
    await api.patch(CLONE_SET, namespace, name, body, MERGE, subresource="status")
    assert msgspec.json.decode(await api.get(CLONE_SET, namespace, name))["status"]["readyReplicas"] == 2


async def test_a_new_pod_runs_at_once(api: KubeClient, population: Population) -> None:
    namespace, _ = population.sets[0]
    body = msgspec.json.encode(typed(POD, "new", namespace, spec={}))
    made = msgspec.json.decode(await api.create(POD, namespace, body))
    assert made["status"]["phase"] == "Running"
    assert made["spec"]["nodeName"]


async def test_what_is_not_served_is_not_found(api: KubeClient) -> None:
    assert await code_of(api.raw("GET", "/apis/example.org/v1/things")) == 404
