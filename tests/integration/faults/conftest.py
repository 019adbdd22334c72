"""One control plane with the whole fleet per module: starting them takes half of a scenario's time."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.cluster import control_plane
from tests.support.fleet import Fleet, fleet
from tests.support.scene import Rollout, rollout

FLAGS = ["--lease-duration=6", "--lease-retry-period=0.5", "--bus-fallback-after=6"]
"""Shorter timeouts than the defaults, so that scenarios do not spend their time waiting."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    """Run all services, with a bus and a control plane of their own."""
    async with control_plane(tmp_path_factory.mktemp("plane")) as cluster, fleet(cluster, flags=FLAGS) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(flotilla: Fleet) -> AsyncIterator[Rollout]:
    """Yield a CloneSet of 200 ready pods; every scenario rolls it to the next image."""
    async with rollout(flotilla) as running:
        yield running
