"""The jobs service on a control plane of its own, with fake agents of the nodes; one namespace per scenario.

The service is killed, has a second replica and its clock set, and a gate is on. All files of the folder share the
plane, and so one worker of pytest-xdist. They run in the order of their names: `test_set_clock.py`, which leaves the
clock wrong, is the last one.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.resources import POD
from flotilla_dev.cluster.kwok import Kubelet
from tests.support.broker import environment
from tests.support.cluster import Cluster, control_plane
from tests.support.fake_agents import FakeAgents
from tests.support.fleet import Fleet, fleet
from tests.support.recorder import Event, Recorder
from tests.support.workspace import Workspace, fresh
from tests.testkit.documents import Json

FAST = Kubelet(start=50, restart=50, stop=50)
NODES = 4
SERVICES = ("watcher", "cloneset", "sidecar", "jobs", "webhook")
FLAGS = (
    "--nodeimage-creation-delay=1s",
    "--shards=4",
    "--lease-duration=4s",
    "--lease-retry-period=1s",
    "--feature-gates=PreDownloadImageForInPlaceUpdate=true",
)
WATCHED = (POD, CLONE_SET, NODE_IMAGE, IMAGE_PULL_JOB, IMAGE_LIST_PULL_JOB)


class Running(NamedTuple):
    """The processes that all scenarios share."""

    cluster: Cluster
    fleet: Fleet
    recorder: Recorder
    agents: FakeAgents
    nodes: list[str]


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with (
        control_plane(tmp_path_factory.mktemp("plane"), nodes=NODES, kubelet=FAST) as cluster,
        fleet(cluster, SERVICES, FLAGS) as services,
    ):
        names = await asyncio.to_thread(_nodes, cluster)
        with (
            Recorder(cluster.rest, *WATCHED) as recorder,
            FakeAgents(services.nats, names) as agents,
        ):
            yield Running(cluster, services, recorder, agents, names)


def _nodes(cluster: Cluster) -> list[str]:
    return sorted(item["metadata"]["name"] for item in cluster.read("nodes")["items"])


class PullSpace(Workspace):
    """A namespace, and the cluster's NodeImages."""

    def __init__(self, running: Running, space: Workspace) -> None:
        super().__init__(running.cluster, running.recorder, space.name)
        self.agents = running.agents
        self.nodes = running.nodes

    def seen(self, kind: str, name: str) -> Json:
        """Return an object of the namespace, or cluster-scoped, as last seen; {} if absent."""
        objects = self._recorder.objects
        return objects.get((kind, self.name, name)) or objects.get((kind, "", name), {})

    def job(self, name: str = "job", kind: str = "ImagePullJob") -> Json:
        """Return a job's status."""
        return self.seen(kind, name).get("status", {})

    def done(self, name: str = "job", kind: str = "ImagePullJob", seconds: float = 60, **fields: object) -> Json:
        """Wait until the job's status has these fields."""

        def reached() -> bool:
            status = self.job(name, kind)
            return bool(status) and all(status.get(field) == value for field, value in fields.items())

        self.until(reached, seconds)
        return self.job(name, kind)

    def tags(self, node: str) -> dict[str, Json]:
        """Return the spec tags of a node, by image and tag."""
        images = self.seen("NodeImage", node).get("spec", {}).get("images", {})
        return {f"{name}:{tag['tag']}": tag for name, image in images.items() for tag in image["tags"]}

    def history(self, since: int = 0, kind: str = "ImagePullJob") -> list[Event]:
        """Return the events of a kind, in the namespace or cluster-wide."""
        seen = self._recorder.events[since:]
        return [
            event
            for event in seen
            if event.object["kind"] == kind and event.object["metadata"].get("namespace") in (None, self.name)
        ]

    def flotilla(self, *arguments: str) -> str:
        """Return the output of a verb of `flotilla` about an object of the namespace."""
        bus, cluster = f"--nats={self.agents.server.url}", f"--kubeconfig={self.cluster.kubeconfig}"
        command = [sys.executable, "-m", "flotilla_cli", *arguments, "-n", self.name, bus, cluster]
        env = environment(self.agents.server)
        reply = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
        assert reply.returncode == 0, reply.stderr
        return reply.stdout

    def ready(self) -> None:
        """Wait until every node has its NodeImage."""
        self.until(lambda: all(self.seen("NodeImage", node) for node in self.nodes), 40)


@pytest.fixture
def space(running: Running, request: pytest.FixtureRequest) -> PullSpace:
    """Return a fresh namespace, named after the test, once every node has its NodeImage."""
    made = PullSpace(running, fresh(running.cluster, running.recorder, request.node.name))
    made.ready()
    return made
