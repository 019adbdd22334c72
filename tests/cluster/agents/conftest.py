"""One cluster of real nodes with controllers and node agents."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.cluster.conftest import Staffed, scenario
from tests.support.agents import agents
from tests.support.cluster import eventually
from tests.support.fleet import SERVICES, fleet
from tests.support.nodes import RealCluster, real_cluster
from tests.support.registry_front import Front, registry_front
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

STAFF = (*SERVICES, "jobs", "policy", "sidecar", "statefulset")
FLAGS = ("--nodeimage-creation-delay=0", "--feature-gates=SidecarTerminator=true")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def staffed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Staffed]:
    async with (
        real_cluster(tmp_path_factory.mktemp("plane")) as cluster,
        fleet(cluster, STAFF, FLAGS) as services,
        agents(cluster, services) as on,
    ):
        await eventually(lambda: idle_agents(cluster) == len(cluster.names), 60)
        yield Staffed(cluster, services, on)


def idle_agents(cluster: RealCluster) -> int:
    """Return how many agents have reported that they have nothing to pull: jobs find their nodes then."""
    images: list[Json] = cluster.read("nodeimages")["items"]
    return sum(image.get("status", {}).get("desired") == 0 for image in images)


@pytest.fixture(scope="package")
def front(staffed: Staffed) -> Iterator[Front]:
    """Run a registry whose failures tests define."""
    with registry_front(staffed.cluster) as made:
        yield made


@pytest.fixture
def space(staffed: Staffed, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace, named after the test."""
    with scenario(staffed.cluster, request) as made:
        yield made
