"""One cluster of real nodes for all kinds, and one set of services.

The services start after the tests that kill daemons and links of nodes. Stuck rollouts come last: their pods stay.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.cluster.conftest import Running, scenario
from tests.support.fleet import ALL_SERVICES, fleet
from tests.support.nodes import RealCluster, real_cluster
from tests.support.workspace import Workspace

HERE = Path(__file__).parent
WITHOUT_SERVICES = ("test_cri.py", "test_nodes.py", "test_image.py")
LAST = "test_explain.py"
FLAGS = (
    "--feature-gates=InPlaceWorkloadVerticalScaling=true",
    "--lease-duration=6",  # a killed service works again soon
    "--lease-retry-period=1",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [place for place, item in enumerate(items) if item.path.parent == HERE]
    ordered = sorted((items[place] for place in ours), key=_turn)
    for place, item in zip(ours, ordered, strict=True):
        items[place] = item


def _turn(item: pytest.Item) -> int:
    return (item.path.name == LAST) - (item.path.name in WITHOUT_SERVICES)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealCluster]:
    async with real_cluster(tmp_path_factory.mktemp("plane")) as made:
        yield made


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def running(cluster: RealCluster) -> AsyncIterator[Running]:
    async with fleet(cluster, ALL_SERVICES, FLAGS) as services:
        yield Running(cluster, services)


@pytest.fixture
def space(running: Running, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace, named after the test."""
    with scenario(running.cluster, request) as made:
        yield made
