"""One Docker engine, and the programs of its images."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.programs import CONTAINERS, CONTROL_PLANE
from flotilla_dev.cluster.provision import provide
from flotilla_dev.cluster.realnodes import debian
from tests.support.docker_engine import DockerEngine, docker_engine


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def program() -> Callable[[str], Path]:
    debian.install(print)
    return await provide([*CONTROL_PLANE, *CONTAINERS, "crane"], SystemClock())


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def engine(
    tmp_path_factory: pytest.TempPathFactory, program: Callable[[str], Path]
) -> AsyncIterator[DockerEngine]:
    async with docker_engine(tmp_path_factory.mktemp("engine"), program) as running:
        yield running
