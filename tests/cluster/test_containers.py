"""Tests with NATS and registry in containers, on a real engine: they pass as they do with processes.

The images are stand-ins made of the same programs (tests/support/stand_ins.py), because nothing is pulled here; the
registry's is crane instead of the image of that name.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.programs import CONTAINERS, CONTROL_PLANE
from flotilla_dev.cluster.provision import provide
from flotilla_dev.cluster.realnodes import debian
from tests.support import stand_ins
from tests.support.cluster import eventually
from tests.support.containers import ALWAYS, SWITCH
from tests.support.docker_engine import DockerEngine, docker_engine

ROOT = Path(__file__).parents[2]
FILES = ("tests/integration/test_bus_contract.py", "tests/integration/test_registry.py")
WORKERS = "4"
"""More workers than cores: these tests wait more than they compute."""

HOLD = """
import sys
from tests.support.containers import container
from tests.support.stand_ins import REGISTRY
with container(REGISTRY, publish=5000):
    print("up", flush=True)
    sys.stdin.read()
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DockerEngine]:
    debian.install(print)
    program = await provide([*CONTROL_PLANE, *CONTAINERS, "crane"], SystemClock())
    async with docker_engine(tmp_path_factory.mktemp("engine"), program) as running:
        running.environment[SWITCH] = ALWAYS
        running.load(stand_ins.NATS, stand_ins.bus(program))
        running.load(stand_ins.REGISTRY, stand_ins.registry(program))
        yield running


async def test_bus_and_registry_keep_their_contracts_in_containers(engine: DockerEngine) -> None:
    said = engine.inside(sys.executable, "-m", "pytest", "-q", "-n", WORKERS, *FILES, cwd=ROOT)
    assert " passed" in said
    made = engine.docker(
        *("events", "--since", "1h", "--until", "0s", "--filter", "event=create"),
        *("--format", "{{.Actor.Attributes.image}}"),
    )
    assert {*made.split()} == {stand_ins.NATS, stand_ins.REGISTRY}
    assert engine.docker("ps", "--all", "--quiet") == ""


async def test_a_killed_test_leaves_no_container(engine: DockerEngine) -> None:
    command = engine.inside_command(sys.executable, "-c", HOLD)
    test = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=engine.environment, cwd=ROOT)
    assert test.stdout is not None
    assert await test.stdout.readline() == b"up\n"
    assert engine.docker("ps", "--quiet")
    test.kill()
    await test.wait()
    await eventually(lambda: engine.docker("ps", "--all", "--quiet") == "")
