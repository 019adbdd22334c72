"""The README's first command, as a new user runs it: from a fresh state folder to a CloneSet updated in place.

On a machine without the programs this downloads or builds them, which takes minutes; all other tests use the cache
afterwards.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flotilla_dev.cluster.processes import marked
from tests.support.cluster import eventually
from tests.support.last_will import taken_down
from tests.support.trap import Trap, trap

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT = 2400
"""Seconds for a first run on a machine without the programs: Kubernetes builds in ten minutes on two slow cores."""

pytestmark = pytest.mark.timeout(BUILD_TIMEOUT + 300)


def run(*command: str | Path, env: dict[str, str] | None = None, check: bool = True) -> str:
    """Run a command of the README, showing its output as it comes; returns the output."""
    lines: list[str] = []
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            sys.stdout.write(line)
            lines.append(line)
    assert not check or process.returncode == 0, "".join(lines[-40:])
    return "".join(lines)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("up") / "state"
    with taken_down(folder):
        yield folder


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trap]:
    with trap(tmp_path_factory.mktemp("production")) as made:
        yield made


@pytest.fixture(scope="module")
def shown(state: Path, production: Trap) -> str:
    """Run the first command in a shell that leads to another cluster, and return its output."""
    return run("scripts/up", "--state", state, env=production.environment)


def flotilla() -> Path:
    return ROOT / ".venv" / "bin" / "flotilla"


def test_the_first_command_shows_an_in_place_update(shown: str, state: Path) -> None:
    assert "All 5 pods kept their name, uid, node and IP, and run nginx:mainline." in shown
    assert f"export KUBECONFIG={state / 'kubeconfig'}" in shown
    assert "flotilla explain cloneset sample" in shown


def test_what_it_shows_is_true(shown: str, state: Path) -> None:
    reply = run(flotilla(), "get", "cloneset", "sample", "-o", "json", env={"FLOTILLA_STATE": str(state)})
    document = json.loads(reply)
    assert "nginx:mainline" in json.dumps(document)
    assert "nginx:alpine" not in json.dumps(document.get("pods", ""))


def test_it_stays_away_from_the_cluster_of_its_shell(shown: str, production: Trap) -> None:
    assert production.calls == []


def test_every_part_is_up(shown: str, state: Path) -> None:
    parts = json.loads(run(flotilla(), "status", "--state", state, "-o", "json"))
    assert {part["name"] for part in parts} >= {
        "etcd",
        "kube-apiserver",
        "nats-server",
        "watcher",
        "cloneset",
        "webhook",
    }
    assert all(part["running"] and part["healthy"] for part in parts), parts


def test_the_first_command_again_is_harmless(shown: str, state: Path) -> None:
    before = [part["pid"] for part in json.loads(run(flotilla(), "status", "--state", state, "-o", "json"))]
    run("scripts/up", "--state", state)
    assert [part["pid"] for part in json.loads(run(flotilla(), "status", "--state", state, "-o", "json"))] == before


def test_down_leaves_nothing_behind(shown: str, state: Path) -> None:
    run(flotilla(), "down", "--state", state)
    assert not list(marked(state))
    assert not state.exists()


KILLED = """
import os, signal, subprocess, sys
from pathlib import Path
from tests.support.last_will import FLOTILLA, taken_down
with taken_down(Path(sys.argv[1])):
    subprocess.run([FLOTILLA, "up", "--state", sys.argv[1], "--no-demo"], check=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_test(folder: Path) -> None:
    reply = subprocess.run([sys.executable, "-c", KILLED, folder], cwd=ROOT, check=False)
    assert reply.returncode == -signal.SIGKILL


async def test_a_killed_test_takes_its_set_along(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    kill_a_test(folder)
    await eventually(lambda: not folder.exists() and not list(marked(folder)))
