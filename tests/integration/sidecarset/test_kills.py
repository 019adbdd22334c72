"""A rollout of the sidecars of 60 pods under kills and wipes: pods stay, no sidecar restarts twice, never more than
maxUnavailable are at it, and not one write is made twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.meshed import NEW, Meshed, at_work, image_of, meshed
from tests.support.shared_plane import KUBELET, NODES
from tests.support.workspace import cloneset, identity

PODS, DOWN = 60, 10
FLAGS = ("--lease-duration=6", "--lease-retry-period=0.5", "--bus-fallback-after=6")
"""Shorter patience than the defaults, so that no scenario spends its time waiting."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    async with (
        control_plane(tmp_path_factory.mktemp("plane"), nodes=NODES, kubelet=KUBELET) as cluster,
        fleet(cluster, (*SERVICES, "sidecar"), flags=FLAGS) as services,
    ):
        yield services


@pytest.fixture
def space(request: pytest.FixtureRequest, flotilla: Fleet) -> Iterator[Meshed]:
    with meshed(flotilla.cluster, request.node.nodeid) as made:
        yield made


async def begin(space: Meshed) -> tuple[int, set[tuple[str, str, str, str]]]:
    """A rollout that is under way: (since when, who the pods are)."""
    space.sidecar_set(maxUnavailable=DOWN)
    space.apply(cloneset(PODS))
    await asyncio.to_thread(space.comes_to, PODS, PODS, PODS, PODS, seconds=120)
    before, mark = {identity(pod) for pod in space.pods.values()}, space.now()
    space.set_sidecar(NEW)
    await asyncio.to_thread(space.until, lambda: done(space) >= DOWN)
    return mark, before


async def end(space: Meshed, mark: int, before: set[tuple[str, str, str, str]]) -> None:
    """It ended right, and nothing was broken on the way."""
    await asyncio.to_thread(space.comes_to, PODS, PODS, PODS, PODS, seconds=120)
    assert {identity(pod) for pod in space.pods.values()} == before
    for pod in space.pods.values():
        assert {one["name"]: one["restartCount"] for one in pod["status"]["containerStatuses"]} == {
            "nginx": 0,
            "proxy": 1,
        }
    assert max(at_work(pods) for pods in space.moments(mark)) <= DOWN
    assert sorted(space.stored().values()) == [1, 2]


def done(space: Meshed) -> int:
    return sum(image_of(pod, "proxy") == NEW for pod in space.pods.values())


@pytest.mark.parametrize("service", ["sidecar", "watcher", "webhook"])
async def test_a_service(flotilla: Fleet, space: Meshed, service: str) -> None:
    mark, before = await begin(space)
    await flotilla.restart(service)
    await end(space, mark, before)


async def test_a_wiped_bus(flotilla: Fleet, space: Meshed) -> None:
    mark, before = await begin(space)
    await flotilla.wipe_bus()
    await end(space, mark, before)


async def test_all_services_and_the_bus(flotilla: Fleet, space: Meshed) -> None:
    mark, before = await begin(space)
    for service in (*SERVICES, "sidecar"):
        flotilla.kill(service)
    await flotilla.kill_bus()
    await flotilla.start_bus()
    for service in (*SERVICES, "sidecar"):
        await flotilla.start(service, wait=False)
    await end(space, mark, before)
