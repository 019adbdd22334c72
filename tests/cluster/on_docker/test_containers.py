"""Tests with NATS and registry in containers, on a real engine: they pass as they do with processes.

The images are stand-ins made of the same programs (tests/support/stand_ins.py), because nothing is pulled here; the
registry's is crane instead of the image of that name.
"""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import stand_ins
from tests.support.cluster import eventually
from tests.support.containers import ALWAYS, SWITCH
from tests.support.docker_engine import DockerEngine

ROOT = Path(__file__).parents[3]
FILES = ("tests/integration/test_bus_contract.py", "tests/integration/test_registry.py")
CHOSEN = "restart or wiped or still or stored or crane"
"""Tests that stop, wipe or pause their server, for which a container has other commands, and some that only store."""
WORKERS = "2"

HOLD = """
import sys
from tests.support.containers import container
from tests.support.stand_ins import REGISTRY
with container(REGISTRY, publish=5000):
    print("up", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def stocked(engine: DockerEngine, program: Callable[[str], Path]) -> DockerEngine:
    """Return the engine with images of both servers."""
    engine.environment[SWITCH] = ALWAYS
    engine.load(stand_ins.NATS, stand_ins.bus(program))
    engine.load(stand_ins.REGISTRY, stand_ins.registry(program))
    return engine


async def test_servers_in_containers_are_stopped_wiped_and_paused_as_processes_are(stocked: DockerEngine) -> None:
    since = str(time.time())
    said = stocked.inside(sys.executable, "-m", "pytest", "-q", "-n", WORKERS, "-k", CHOSEN, *FILES, cwd=ROOT)
    assert " passed" in said
    made = stocked.docker(
        *("events", "--since", since, "--until", "0s", "--filter", "event=create"),
        *("--format", "{{.Actor.Attributes.image}}"),
    )
    assert {*made.split()} == {stand_ins.NATS, stand_ins.REGISTRY}
    assert stocked.docker("ps", "--all", "--quiet") == ""


async def test_a_killed_test_leaves_no_container(stocked: DockerEngine) -> None:
    command = stocked.inside_command(sys.executable, "-c", HOLD)
    test = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=stocked.environment, cwd=ROOT)
    assert test.stdout is not None
    assert await test.stdout.readline() == b"up\n"
    assert stocked.docker("ps", "--quiet")
    test.kill()
    await test.wait()
    await eventually(lambda: stocked.docker("ps", "--all", "--quiet") == "")
