"""One control plane with three real nodes and one set of services per file, one namespace per scenario.

A file may name in `WATCHED` the resources that its scenarios look back at, in `STAFF` services that it needs beside the
usual ones, and in `FLAGS` more flags for them. `cluster` is the control plane without services, `running` has
CloneSets' controllers, `staffed` also those of nodes, and node agents.

The files that leave nodes and services alone share one cluster, and so one worker of pytest-xdist (`QUIET`).
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD, Resource
from tests.support.agents import Agents, agents
from tests.support.cluster import eventually
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.nodes import RealCluster, real_cluster
from tests.support.recorder import Recorder
from tests.support.registry_front import Front, registry_front
from tests.support.schedule import Units, file_of
from tests.support.workspace import Workspace, fresh
from tests.testkit.documents import Json

HERE = Path(__file__).parent
NODES = 3
QUIET = ("test_cri.py", "test_image.py", "test_in_place.py", "test_seed_documents.py")
FLAGS = ("--feature-gates=InPlaceWorkloadVerticalScaling=true",)
"""Flags of the services of the quiet files."""
FIRST = 2400
"""Seconds for the first test of a file: a machine without the programs builds them, which takes many minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests of quiet files to the end: their cluster lives until then."""
    items.sort(key=lambda item: unit(item.nodeid) == "quiet")
    files: set[Path] = set()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(300 if item.path in files else FIRST))
            files.add(item.path)


def unit(nodeid: str) -> str:
    """Return what a worker gets with this test."""
    return "quiet" if file_of(nodeid).endswith(tuple(f"/{HERE.name}/{file}" for file in QUIET)) else file_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return Units(config, log, unit) if config.getoption("dist") == "loadscope" else None


class Running(NamedTuple):
    """The processes that the scenarios of a file share."""

    cluster: RealCluster
    fleet: Fleet
    recorder: Recorder


class Staffed(NamedTuple):
    """A cluster with services and agents."""

    cluster: RealCluster
    fleet: Fleet
    recorder: Recorder
    agents: Agents


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def quiet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealCluster]:
    """Run the cluster of the quiet files."""
    async with real_cluster(tmp_path_factory.mktemp("plane"), nodes=NODES) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running(quiet: RealCluster) -> AsyncIterator[Running]:
    """Run services on the cluster of the quiet files."""
    async with fleet(quiet, flags=FLAGS) as services:
        with Recorder(quiet.rest, POD, CLONE_SET) as recorder:
            yield Running(quiet, services, recorder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealCluster]:
    """Run the cluster of one file."""
    async with real_cluster(tmp_path_factory.mktemp("plane"), nodes=NODES) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> RealCluster:
    return request.getfixturevalue("quiet" if request.path.name in QUIET else "own")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def staffed(cluster: RealCluster, request: pytest.FixtureRequest) -> AsyncIterator[Staffed]:
    flags = ("--nodeimage-creation-delay=0", *getattr(request.module, "FLAGS", ()))
    watched: tuple[Resource, ...] = getattr(request.module, "WATCHED", (POD, CLONE_SET))
    staff = (*SERVICES, "jobs", *getattr(request.module, "STAFF", ()))
    async with fleet(cluster, staff, flags) as services, agents(cluster, services) as on:
        with Recorder(cluster.rest, *watched) as recorder:
            await eventually(lambda: idle_agents(cluster) == NODES, 60)
            yield Staffed(cluster, services, recorder, on)


def idle_agents(cluster: RealCluster) -> int:
    """Return how many agents have reported that they have nothing to pull: jobs find their nodes then."""
    images: list[Json] = cluster.read("nodeimages")["items"]
    return sum(image.get("status", {}).get("desired") == 0 for image in images)


@pytest.fixture(scope="module")
def front(staffed: Staffed) -> Iterator[Front]:
    """Run a registry whose failures tests define."""
    with registry_front(staffed.cluster) as made:
        yield made


@pytest.fixture
def space(request: pytest.FixtureRequest) -> Workspace:
    """Return a fresh namespace, named after the test; in files that use `staffed` with all services."""
    shared: Running | Staffed = request.getfixturevalue("staffed" if "staffed" in request.fixturenames else "running")
    return fresh(shared.cluster, shared.recorder, request.node.nodeid)
