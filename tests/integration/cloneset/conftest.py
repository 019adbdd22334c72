"""One namespace per scenario, on the control plane that all share.

A file that names flags of the services in `FLAGS` has a control plane and services of its own.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from tests.support.cluster import control_plane
from tests.support.fleet import Fleet, fleet
from tests.support.shared_plane import KUBELET, NODES
from tests.support.workspace import Workspace, watched


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first scenario waits for its control plane, too; on a busy machine that takes half a minute."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> AsyncIterator[Fleet]:
    async with (
        control_plane(tmp_path_factory.mktemp("plane"), nodes=NODES, kubelet=KUBELET) as cluster,
        fleet(cluster, flags=request.module.FLAGS) as services,
    ):
        yield services


@pytest.fixture
def space(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A fresh namespace, named after the test."""
    flotilla: Fleet = request.getfixturevalue("own" if hasattr(request.module, "FLAGS") else "shared")
    with watched(flotilla.cluster, request.node.nodeid, CLONE_SET) as made:
        yield made
