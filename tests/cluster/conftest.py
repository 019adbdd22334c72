"""One control plane with three real nodes and one set of services per file, one namespace per scenario.

A file may name flags of the services in `FLAGS`. `cluster` is the control plane without services.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from tests.support.fleet import Fleet, fleet
from tests.support.nodes import RealCluster, real_cluster
from tests.support.recorder import Recorder
from tests.support.workspace import Workspace, fresh

NODES = 3
FIRST = 2400
"""Seconds for the first test of a file: a machine without the programs builds them, which takes many minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    files: set[Path] = set()
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(150 if item.path in files else FIRST))
            files.add(item.path)


class Running(NamedTuple):
    """What the scenarios of a file share."""

    cluster: RealCluster
    fleet: Fleet
    recorder: Recorder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealCluster]:
    async with real_cluster(tmp_path_factory.mktemp("plane"), nodes=NODES) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(cluster: RealCluster, request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    flags: tuple[str, ...] = getattr(request.module, "FLAGS", ())
    async with fleet(cluster, flags=flags) as services:
        with Recorder(cluster.program("kubectl"), cluster.kubeconfig, "pods", "clonesets") as recorder:
            yield Running(cluster, services, recorder)


@pytest.fixture
def space(running: Running, request: pytest.FixtureRequest) -> Workspace:
    """A fresh namespace, named after the test."""
    return fresh(running.cluster, running.recorder, request.node.name)
