"""A rollout of 60 pods in place under kills and wipes: identities and claims stay, no container restarts twice, never
more than maxUnavailable pods are down, and not one write is made twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.shared_plane import KUBELET, NODES
from tests.support.stateful import IN_PLACE, serving, statefulset
from tests.support.workspace import Workspace, identity, image, restarts, watched

PODS, DOWN = 60, 10
FLAGS = ("--lease-duration=6", "--lease-retry-period=0.5", "--bus-fallback-after=6")
"""Shorter patience than the defaults, so that no scenario spends its time waiting."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    async with (
        control_plane(tmp_path_factory.mktemp("plane"), nodes=NODES, kubelet=KUBELET) as cluster,
        fleet(cluster, (*SERVICES, "statefulset"), flags=FLAGS) as services,
    ):
        yield services


@pytest.fixture
def space(request: pytest.FixtureRequest, flotilla: Fleet) -> Iterator[Workspace]:
    with watched(flotilla.cluster, request.node.nodeid, STATEFUL_SET) as made:
        yield made


async def begin(space: Workspace) -> tuple[int, set[tuple[str, str, str, str]]]:
    """A rollout that is under way: (since when, who the pods are)."""
    space.apply(statefulset(PODS, strategy=IN_PLACE | {"maxUnavailable": DOWN}, claims=["data"]))
    await asyncio.to_thread(space.settled, "web", 120, replicas=PODS, readyReplicas=PODS)
    before, mark = {identity(pod) for pod in space.pods.values()}, space.now()
    space.set_image("nginx:mainline", "web")
    await asyncio.to_thread(space.until, lambda: done(space) >= DOWN)
    return mark, before


async def end(space: Workspace, mark: int, before: set[tuple[str, str, str, str]]) -> None:
    """It ended right, and nothing was broken on the way."""
    await asyncio.to_thread(space.settled, "web", 120, updatedReadyReplicas=PODS, readyReplicas=PODS)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {restarts(pod) for pod in space.pods.values()} == {1}
    assert min(serving(pods) for pods in space.moments(mark)) >= PODS - DOWN
    assert len(space.read("pvc")["items"]) == PODS


def done(space: Workspace) -> int:
    return sum(image(pod) == "nginx:mainline" for pod in space.pods.values())


@pytest.mark.parametrize("service", ["statefulset", "watcher", "webhook"])
async def test_a_service(flotilla: Fleet, space: Workspace, service: str) -> None:
    mark, before = await begin(space)
    assert done(space) < PODS
    await flotilla.restart(service)
    await end(space, mark, before)


async def test_a_wiped_bus(flotilla: Fleet, space: Workspace) -> None:
    mark, before = await begin(space)
    await flotilla.wipe_bus()
    await end(space, mark, before)


async def test_all_services_and_the_bus(flotilla: Fleet, space: Workspace) -> None:
    mark, before = await begin(space)
    for service in (*SERVICES, "statefulset"):
        flotilla.kill(service)
    await flotilla.kill_bus()
    await flotilla.start_bus()
    for service in (*SERVICES, "statefulset"):
        await flotilla.start(service, wait=False)
    await end(space, mark, before)
