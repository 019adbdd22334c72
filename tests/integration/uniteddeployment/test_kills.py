"""Rollouts and moves between subsets under kills and wipes: one child of each subset, no pod that is not needed, and
never fewer that serve than before."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.shared_plane import KUBELET, NODES
from tests.support.united import CHILDREN, NAME, children, replicas_of, serving, set_image, settled, united
from tests.support.workspace import Workspace, identity, image, watched

PODS = 24
NEW = "nginx:mainline"
STAFF = (*SERVICES, "topology")
FLAGS = ("--lease-duration=6", "--lease-retry-period=0.5", "--bus-fallback-after=6")
"""Shorter patience than the defaults, so that no scenario spends its time waiting."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    async with (
        control_plane(tmp_path_factory.mktemp("plane"), nodes=NODES, kubelet=KUBELET) as cluster,
        fleet(cluster, STAFF, flags=FLAGS) as services,
    ):
        yield services


@pytest.fixture
def space(request: pytest.FixtureRequest, flotilla: Fleet) -> Iterator[Workspace]:
    with watched(flotilla.cluster, request.node.nodeid, UNITED_DEPLOYMENT, *CHILDREN) as made:
        yield made


async def roll(space: Workspace) -> int:
    """Begin a rollout in place of three subsets, held at half of one."""
    manifest = united(PODS, "abc", partitions={"c": 4})
    rolling = {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 2}}
    manifest["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] = rolling
    space.apply(manifest)
    await asyncio.to_thread(settled, space, PODS, 120)
    mark = space.now()
    set_image(space, NEW)
    await asyncio.to_thread(space.until, lambda: updated(space) >= 3)
    return mark


def updated(space: Workspace) -> int:
    return sum(image(pod) == NEW for pod in space.pods.values())


async def rolled(space: Workspace, mark: int, before: set[tuple[str, str, str, str]]) -> None:
    """The rollout stands at its partition, and broke nothing."""
    await asyncio.to_thread(
        space.settled, NAME, 120, readyReplicas=PODS, updatedReplicas=PODS - 4, updatedReadyReplicas=PODS - 4
    )
    assert {identity(pod) for pod in space.pods.values()} == before
    assert updated(space) == PODS - 4
    assert max(sum(image(pod) == NEW for pod in pods.values()) for pods in space.moments(mark)) == PODS - 4
    assert len(children(space)) == 3


@pytest.mark.parametrize("service", ["topology", "watcher", "webhook", "cloneset"])
async def test_a_service_in_mid_rollout(flotilla: Fleet, space: Workspace, service: str) -> None:
    mark = await roll(space)
    before = {identity(pod) for pod in space.pods.values()}
    await flotilla.restart(service)
    await rolled(space, mark, before)


async def test_a_wiped_bus_in_mid_rollout(flotilla: Fleet, space: Workspace) -> None:
    mark = await roll(space)
    before = {identity(pod) for pod in space.pods.values()}
    await flotilla.wipe_bus()
    await rolled(space, mark, before)


async def test_all_die_while_subsets_come_and_go(flotilla: Fleet, space: Workspace) -> None:
    """No child is made twice, though names of children are made up."""
    space.apply(united(PODS, "abc"))
    await asyncio.to_thread(settled, space, PODS, 120)
    mark = space.now()
    space.apply(united(PODS, "abd"))
    await asyncio.to_thread(space.until, lambda: "d" in children(space))
    for service in STAFF:
        flotilla.kill(service)
    await flotilla.kill_bus()
    await flotilla.start_bus()
    for service in STAFF:
        await flotilla.start(service, wait=False)
    await asyncio.to_thread(space.until, lambda: replicas_of(space) == {"a": 8, "b": 8, "d": 8}, 120)
    await asyncio.to_thread(settled, space, PODS, 120)
    assert min(serving(pods) for pods in space.moments(mark)) >= PODS
