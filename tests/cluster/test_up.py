"""`scripts/up --real-nodes 3` as a new user meets it; sets side by side; killed half-way, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.processes import marked
from flotilla_dev.cluster.realnodes import isolation
from tests.support.cluster import eventually
from tests.support.last_will import taken_down

ROOT = Path(__file__).parents[2]
FLOTILLA = ROOT / ".venv" / "bin" / "flotilla"


UNTOUCHED = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers")
FOUND = [path for path in UNTOUCHED if Path(path).exists()]
"""Files of a kubelet, and those of them that existed before."""


def run(*command: str | Path, check: bool = True) -> str:
    """Run a command, and return all that it prints."""
    reply = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert not check or reply.returncode == 0, reply.stdout
    return reply.stdout


def healthy(state: Path) -> dict[str, int]:
    """Return the process of each part, after checking that all run and are healthy."""
    parts = json.loads(run(FLOTILLA, "status", "--state", state, "-o", "json", check=False))
    assert all(part["running"] and part["healthy"] for part in parts), parts
    return {part["name"]: part["pid"] for part in parts}


def interfaces() -> set[str]:
    """Return the network links of sets on this machine; each is named after the process of its switch."""
    return set(re.findall(r"\bfl-\d+", run("ip", "-brief", "link")))


def cut_off() -> list[str]:
    return [name for name in interfaces() if not Path(f"/proc/{name.removeprefix('fl-')}").exists()]


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text(encoding="utf-8")


async def assert_nothing_is_left(state: Path) -> None:
    """Check that no process, network link, mount or control group is left."""
    await eventually(lambda: not list(marked(state)))
    await eventually(lambda: not cut_off() and not isolation.leftover_groups())
    assert str(state) not in mounts()


def killed_at(moment: str, state: Path) -> None:
    """Run `flotilla up` and kill it when it prints this."""
    command = [FLOTILLA, "up", "--real-nodes", "2", "--state", state, "--no-demo"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if moment in line:
                break
        process.send_signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("up") / "state"
    with taken_down(folder):
        yield folder


@pytest.fixture(scope="module")
def shown(state: Path) -> str:
    """Run the first command and return its output."""
    return run("scripts/up", "--real-nodes", "3", "--state", state)


def test_it_shows_an_in_place_update_of_real_containers(shown: str, state: Path) -> None:
    assert "All 5 pods kept their name, uid, node and IP, and run nginx:mainline." in shown
    assert len(set(re.findall(r"(real-\d) +[\d.]+ +alpine → mainline", shown))) == 3
    parts = {"real-0", "real-0-containerd", "real-2-kubelet", "real-2-agent", "registry", "switch"}
    assert parts <= healthy(state).keys()


def test_again_it_changes_nothing(shown: str, state: Path) -> None:
    before = healthy(state)
    run("scripts/up", "--state", state)
    assert healthy(state) == before


@pytest.mark.parametrize("moment", ["Start the control plane", "starting real"])
async def test_killed_half_way_and_taken_down_it_leaves_nothing(
    moment: str, shown: str, state: Path, tmp_path: Path
) -> None:
    """Beside a set that runs, and that notices nothing."""
    before = healthy(state)
    second = tmp_path / "second"
    with taken_down(second):
        killed_at(moment, second)
        run(FLOTILLA, "down", "--state", second)
        assert not is_there(second)
        await assert_nothing_is_left(second)
    assert healthy(state) == before


def is_there(folder: Path) -> bool:
    return folder.exists()


async def test_killed_half_way_it_goes_on_when_it_is_called_again(shown: str, tmp_path: Path) -> None:
    second = tmp_path / "second"
    with taken_down(second):
        killed_at("Start NATS", second)
        run(FLOTILLA, "up", "--state", second, "--real-nodes", "2", "--no-demo")
        assert {"real-0-kubelet", "real-1-kubelet"} <= healthy(second).keys()
        run(FLOTILLA, "down", "--state", second)
        await assert_nothing_is_left(second)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.support.nodes import real_cluster
async def main():
    async with real_cluster(Path(sys.argv[1]), nodes=1):
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def kill_a_test(folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    reply = subprocess.run([sys.executable, "-c", KILLED, folder], env=env, cwd=ROOT, check=False)
    assert reply.returncode == -signal.SIGKILL


async def test_a_killed_test_takes_its_nodes_along(shown: str, tmp_path: Path) -> None:
    """Only empty control groups stay, which the next set removes."""
    kill_a_test(tmp_path)
    await eventually(lambda: not list(marked(tmp_path)))
    await isolation.sweep_groups(SystemClock())
    await assert_nothing_is_left(tmp_path)


async def test_down_leaves_nothing_behind(shown: str, state: Path) -> None:
    run(FLOTILLA, "down", "--state", state)
    await assert_nothing_is_left(state)


def test_nothing_was_made_outside_the_state_folder(state: Path) -> None:
    assert not state.exists()
    assert not any(Path(path).exists() for path in UNTOUCHED if path not in FOUND)
