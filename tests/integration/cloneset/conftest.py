"""One control plane and one set of services per file, one namespace per scenario.

A file may name flags of the services in `FLAGS`.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_cli.cluster.kwok import Kubelet
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from tests.support.cluster import Cluster, control_plane
from tests.support.fleet import Fleet, fleet
from tests.support.recorder import Recorder
from tests.support.workspace import Workspace, fresh

FAST = Kubelet(start=50, restart=50, stop=50)
NODES = 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first scenario of a file waits for its control plane, too; on a busy machine that takes half a minute."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))


class Running(NamedTuple):
    """What the scenarios of a file share."""

    cluster: Cluster
    fleet: Fleet
    recorder: Recorder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    flags: tuple[str, ...] = getattr(request.module, "FLAGS", ())
    async with (
        control_plane(tmp_path_factory.mktemp("plane"), nodes=NODES, kubelet=FAST) as cluster,
        fleet(cluster, flags=flags) as services,
    ):
        with Recorder(cluster.program("kubectl"), cluster.kubeconfig, POD, CLONE_SET) as recorder:
            yield Running(cluster, services, recorder)


@pytest.fixture
def space(running: Running, request: pytest.FixtureRequest) -> Workspace:
    """A fresh namespace, named after the test."""
    return fresh(running.cluster, running.recorder, request.node.name)
