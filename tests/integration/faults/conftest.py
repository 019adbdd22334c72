"""One control plane with the fleet for this folder: starting them takes half of a scenario's time.

Files with a proxy, or without services, do not use it.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from flotilla_cli.local import is_alive
from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.scene import Rollout, rollout

FLAGS = ["--lease-duration=6", "--lease-retry-period=1", "--bus-fallback-after=6"]
"""Shorter timeouts than the defaults, so that scenarios do not spend their time waiting."""
PODS, MOST = 100, 10


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    """Run the usual services, with a bus and a control plane of their own."""
    async with control_plane(tmp_path_factory.mktemp("plane")) as cluster, fleet(cluster, flags=FLAGS) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(installation: Fleet) -> Fleet:
    """Yield the usual services, one replica of each: those that another file left missing are started, others end."""
    for name, member in list(installation.members.items()):
        if name not in SERVICES or not is_alive(member.process):
            installation.kill(name)
    for service in SERVICES:
        if service not in installation.members:
            await installation.start(service, wait=False)
    for service in SERVICES:
        await installation.ready(service)
    return installation


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(flotilla: Fleet) -> AsyncIterator[Rollout]:
    """Yield a CloneSet of 100 ready pods; every scenario rolls it to the next image, ten pods at a time."""
    async with rollout(flotilla, PODS, MOST) as running:
        yield running
