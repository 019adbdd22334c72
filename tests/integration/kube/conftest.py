"""One control plane without nodes or services for this folder: what our code needs of an apiserver."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.cluster import Cluster, control_plane


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with control_plane(tmp_path_factory.mktemp("plane"), nodes=0) as running:
        yield running
