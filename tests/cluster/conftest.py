"""Control planes with three real nodes, which the files of a folder share; one namespace per scenario.

The tests of a folder go to one worker of pytest-xdist, file by file, and its cluster ends with the last of them:

- `agents`: CloneSets' and other controllers and a node agent on each node, as `staffed`;
- `kinds`: all controllers without agents, as `running`; and tests of nodes, image and containerd, which need none;
- `on_docker`: a Docker engine instead of nodes.

Other files have a cluster of their own (`cluster`), or start what they need.
"""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NAMESPACE, Resource
from tests.support.agents import Agents
from tests.support.cluster import Cluster
from tests.support.fleet import Fleet
from tests.support.nodes import RealCluster, real_cluster
from tests.support.schedule import Units, file_of
from tests.support.workspace import Workspace, watched

HERE = Path(__file__).parent
FIRST = 2400
"""Seconds for the first test of a file: a machine without the programs builds them, which takes many minutes."""
ORDER = ("test_chart_upgrade.py", "kinds/", "test_chart_faults.py", "agents/", "test_chart.py", "on_docker/")
"""The files and folders in the order in which they begin: the longest first, so that none runs alone at the end.

Each file that rolls hundreds of pods is followed by a folder whose tests wait most of the time: two workers then run
one of each.
"""


def place(path: Path) -> int:
    """Return the place of a file in `ORDER`."""
    name = path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else ""
    return next((index for index, first in enumerate(ORDER) if name.startswith(first)), len(ORDER))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests, and give the first one of each file more time."""
    items.sort(key=lambda item: place(item.path))
    files: set[Path] = set()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(300 if item.path in files else FIRST))
            files.add(item.path)


def unit(nodeid: str) -> str:
    """Return what a worker gets with this test: the folder whose files share a cluster, or its file."""
    file = file_of(nodeid)
    folder = file.rpartition("/")[0]
    return file if folder.endswith(f"/{HERE.name}") else folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return Units(config, log, unit) if config.getoption("dist") == "loadscope" else None


class Running(NamedTuple):
    """A cluster with services."""

    cluster: RealCluster
    fleet: Fleet


class Staffed(NamedTuple):
    """A cluster with services and agents."""

    cluster: RealCluster
    fleet: Fleet
    agents: Agents


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealCluster]:
    """Run the cluster of one file."""
    async with real_cluster(tmp_path_factory.mktemp("plane")) as made:
        yield made


@contextmanager
def scenario(cluster: Cluster, request: pytest.FixtureRequest, *resources: Resource) -> Generator[Workspace]:
    """Yield a fresh namespace, named after the test, which is deleted after it.

    Pods and the resources are recorded, by default those in the file's `WATCHED`, or CloneSets. The first resource is
    the workload.
    """
    recorded: tuple[Resource, ...] = resources or getattr(request.module, "WATCHED", (CLONE_SET,))
    with watched(cluster, request.node.nodeid, *recorded) as made:
        yield made
    forget(cluster, made.name)


def forget(cluster: Cluster, namespace: str) -> None:
    """Delete a namespace without waiting for its end."""
    cluster.rest.send("DELETE", NAMESPACE.path(name=namespace))
