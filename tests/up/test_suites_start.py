"""Tests started in a shell that leads to production do not touch it.

Covers the collection of layers, the first cluster of a test, and the commands that it runs.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.surroundings import ENTERED
from tests.support.trap import Trap, trap

ROOT = Path(__file__).parents[2]
LAYERS = ("unit/cli", "unit/devcluster", "up", "integration", "cluster", "perf")
"""All that start processes, or look for programs and clusters."""

FIRST = "tests/integration/test_control_plane.py"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def production(tmp_path: Path) -> Iterator[Trap]:
    with trap(tmp_path) as made:
        yield made


def started(production: Trap, *arguments: str) -> str:
    """Return the end of the output of pytest, started in such a shell."""
    shell = {name: value for name, value in os.environ.items() if name != ENTERED} | production.environment
    shell["PATH"] = os.pathsep.join((str(production.programs), *_without_stubs(shell["PATH"])))
    reply = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env=shell,
        capture_output=True,
        text=True,
        check=False,
    )
    assert reply.returncode == 0, reply.stdout[-4000:] + reply.stderr[-2000:]
    return reply.stdout


def _without_stubs(path: str) -> list[str]:
    return [folder for folder in path.split(os.pathsep) if not folder.endswith("/not-ours")]


def test_layers_are_collected(production: Trap) -> None:
    assert " tests collected" in started(production, "--collect-only", *(f"tests/{layer}" for layer in LAYERS))
    assert production.calls == []


def test_the_first_clusters_and_commands_are_the_tests_own(production: Trap) -> None:
    assert " passed" in started(production, FIRST)
    assert production.calls == []


def test_the_trap_would_notice(production: Trap) -> None:
    """Commands of such a shell do go to production."""
    shell = os.environ | production.environment
    get = [Path(sys.executable).with_name("flotilla"), "get", "cloneset", "web"]
    subprocess.run(get, env=shell, capture_output=True, check=False, timeout=60)
    assert any(call.startswith("the listener") for call in production.calls)
    subprocess.run([production.programs / "kubectl", "get", "pods"], check=True, capture_output=True)
    assert production.calls[-1].endswith("/kubectl get pods")
