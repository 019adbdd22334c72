"""Runs short scenarios in a namespace of a simulated cluster."""

from collections.abc import Awaitable, Callable
from typing import Any

from flotilla_common.api.resources import NAMESPACE, POD
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.client import SimulatedApi
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.cluster.cluster import Cluster
from tests.simulation.contract.apiserver.harness import STRATEGIC, Harness, encode
from tests.simulation.history import History
from tests.simulation.loop import SimulatedClock, SimulatedLoop, run


class ClusterHarness(Harness):
    """A namespace in a cluster of three nodes."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.clock = SimulatedClock(loop)
        self.history = History()
        self.server = ApiServer(self.clock, self.history)
        self.cluster = Cluster(self.server)
        super().__init__(SimulatedApi(self.server, "user"), "shop")

    async def begin(self) -> None:
        await self.cluster.add_nodes(3)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.api.create(NAMESPACE, "", encode(body))

    async def rest(self) -> None:
        """Wait until the cluster has nothing left to do."""
        while self.cluster.busy:
            await self.clock.sleep(0.05)

    async def pod(self, name: str = "web", *, spec: Json | None = None, **metadata: Any) -> Json:
        """Create a pod and return it once the cluster is at rest."""
        wanted = {"containers": [{"name": "main", "image": "nginx:1"}]} | (spec or {})
        await self.create(POD, {"metadata": {"name": name} | metadata, "spec": wanted})
        await self.rest()
        return await self.get(POD, name)

    async def image(self, image: str, name: str = "web") -> Json:
        """Update a pod in place and return it once the cluster is at rest."""
        await self.patch(POD, name, {"spec": {"containers": [{"name": "main", "image": image}]}}, STRATEGIC)
        await self.rest()
        return await self.get(POD, name)

    def states(self, name: str = "web") -> list[tuple[str, str, int, str]]:
        """Return the pod's successive states: running image (empty for none), Ready, restarts, phase."""
        seen: list[tuple[str, str, int, str]] = []
        for version in self.history.of(POD, self.namespace, name):
            state = _state(version.after) if version.after else ("", "gone", 0, "")
            if not seen or seen[-1] != state:
                seen.append(state)
        return seen


def _state(pod: Json) -> tuple[str, str, int, str]:
    status = pod["status"].get("containerStatuses", [{"state": {}, "restartCount": 0}])[0]
    image = status["image"] if "running" in status["state"] else ""
    return image, condition(pod, "Ready"), status["restartCount"], pod["status"]["phase"]


def condition(document: Json, kind: str) -> str:
    """Return the status of a condition, empty for none."""
    return next((one["status"] for one in document["status"].get("conditions", []) if one["type"] == kind), "")


Story = Callable[[ClusterHarness], Awaitable[None]]


def play_in_a_cluster(story: Story) -> None:
    """Play a story in a new cluster."""

    async def main(loop: SimulatedLoop) -> None:
        cluster = ClusterHarness(loop)
        await cluster.begin()
        await story(cluster)

    run(main)
