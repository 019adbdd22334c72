"""compose.yaml as its users meet it: `docker compose up` on a real engine, a CloneSet, interruptions, no trace left.

The engine pulls nothing: the images under the public names are made of the same programs (tests/support/stand_ins.py).
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from flotilla_dev.cluster.demo import AFTER, BEFORE, NAME, NAMESPACE, Rows, broken_promises, manifest, row
from flotilla_dev.image import build
from tests.support import stand_ins
from tests.support.cluster import eventually
from tests.support.docker_engine import DockerEngine

ROOT = Path(__file__).parents[3]
ONCE = {"keys", "nodes", "install"}


class Set:
    """The set of compose.yaml, and a user's actions on it."""

    def __init__(self, engine: DockerEngine, kubectl: Path, folder: Path) -> None:
        self.engine = engine
        self._kubectl = kubectl
        self._kubeconfig = folder / "kubeconfig"

    def compose(self, *arguments: str) -> str:
        return self.engine.docker("compose", "--progress", "plain", *arguments, cwd=ROOT)

    def up(self) -> None:
        """Run the first command of compose.yaml, and copy the kubeconfig as in docs/operations.md."""
        self.compose("up", "--wait", "--no-build", "--pull", "never")
        self.compose("cp", "keys:/keys/people/kubeconfig", str(self._kubeconfig))

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl on the machine of the engine, where the apiserver's port is published."""
        return self.engine.inside(str(self._kubectl), "--kubeconfig", str(self._kubeconfig), *arguments, stdin=stdin)

    def apply(self, image: str, replicas: int = 5) -> None:
        document = manifest(image)
        document["spec"]["replicas"] = replicas
        self.kubectl("apply", "-f", "-", stdin=msgspec.json.encode(document).decode())

    def pods(self) -> Rows:
        found = json.loads(self.kubectl("get", "pods", "-n", NAMESPACE, "-l", f"app={NAME}", "-o", "json"))["items"]
        return {pod["metadata"]["name"]: row(pod) for pod in found}

    def run(self, image: str, replicas: int = 5) -> bool:
        """Report whether this many pods run this image."""
        pods = self.pods().values()
        return len(pods) == replicas and all(pod.ready and pod.image == image for pod in pods)

    def states(self) -> dict[str, tuple[str, int]]:
        """Return state and exit code of each container."""
        lines = self.compose("ps", "--all", "--format", "json").splitlines()
        return {found["Service"]: (found["State"], found["ExitCode"]) for found in map(json.loads, lines)}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(
    engine: DockerEngine, program: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Set:
    for reference, image in stand_ins.control_plane(program).items():
        engine.load(reference, image)
    engine.load(build.reference(), build.build(print).image)
    engine.load(build.reference(build.DEV_REPOSITORY), build.build_dev(print).image)
    made = Set(engine, program("kubectl"), tmp_path_factory.mktemp("user"))
    made.up()
    return made


async def test_everything_runs_and_what_is_done_once_has_ended_well(running: Set) -> None:
    states = running.states()
    assert {service for service, state in states.items() if state == ("exited", 0)} == ONCE
    assert {state for service, state in states.items() if service not in ONCE} == {("running", 0)}


async def test_a_changed_image_is_updated_in_place(running: Set) -> None:
    running.apply(BEFORE)
    await eventually(lambda: running.run(BEFORE))
    before = running.pods()
    running.apply(AFTER)
    await eventually(lambda: running.run(AFTER))
    assert broken_promises(before, running.pods()) == []
    assert "[Complete]" in running.compose("run", "--rm", "flotilla", "explain", "cloneset", NAME)


async def test_commands_on_the_machine_itself_reach_the_bus(running: Set, tmp_path: Path) -> None:
    """With the settings from docs/operations.md."""
    running.compose("cp", "keys:/keys/people/.", str(tmp_path))
    said = running.engine.inside(
        "env",
        f"KUBECONFIG={tmp_path / 'kubeconfig'}",
        "FLOTILLA_NATS=tls://127.0.0.1:4222",
        f"FLOTILLA_NATS_CREDS={tmp_path / 'bus.seed'}",
        f"FLOTILLA_NATS_CA={tmp_path / 'bus-ca.crt'}",
        *(sys.executable, "-m", "flotilla_cli", "explain", "cloneset", NAME),
    )
    assert "[Complete]" in said


async def test_it_goes_on_after_a_stop(running: Set) -> None:
    """Also the fake nodes, with what they have missed."""
    running.apply(AFTER)
    await eventually(lambda: running.run(AFTER))
    before = running.pods()
    running.compose("kill", "kwok")
    running.apply(AFTER, replicas=7)
    await eventually(lambda: len(running.pods()) == 7)
    running.compose("stop")
    assert {state for state, _ in running.states().values()} == {"exited"}
    running.up()
    await eventually(lambda: running.run(AFTER, replicas=7))
    assert {name: running.pods()[name] for name in before} == before


async def test_nothing_is_left_of_it(running: Set) -> None:
    running.compose("down", "--volumes")
    assert running.engine.docker("ps", "--all", "--quiet") == ""
    assert running.engine.docker("volume", "ls", "--quiet") == ""
    assert running.engine.docker("network", "ls", "--quiet", "--filter", "label=com.docker.compose.project") == ""
