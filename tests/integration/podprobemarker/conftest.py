"""One namespace per scenario, on the shared control plane; tests act as the agents."""

import json
from collections.abc import Iterator

import msgspec
import pytest

from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbeStatus
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.node.reports import Answer, NodePodProbeReport
from flotilla_dev.cluster.nats import NatsServer
from tests.support.fleet import Fleet
from tests.support.probe_reports import report, statuses
from tests.support.workspace import Workspace, condition, is_ready, watched
from tests.testkit.documents import Json, typed

NODE = "node-0"
FINALIZER = "kruise.io/node-pod-probe-cleanup"
POLICY = [
    {"state": "Succeeded", "labels": {"idle": "yes"}, "annotations": {"cost": "-5"}},
    {"state": "Failed", "annotations": {"cost": "5"}},
]


def probe(name: str = "idle", **members: object) -> Json:
    """Return a probe of container `game`, as the worked examples have it."""
    how = {"exec": {"command": ["sh", "-c", "players"]}, "periodSeconds": 3}
    given = {"containerName": "game", "probe": how, "podConditionType": "game.io/idle", "markerPolicy": POLICY}
    return {"name": name} | given | members


def marker(*probes: Json, name: str = "m") -> Json:
    return typed(
        POD_PROBE_MARKER, name, spec={"selector": {"matchLabels": {"app": "game"}}, "probes": list(probes) or [probe()]}
    )


class Game(msgspec.Struct, frozen=True):
    """Pods of a game on one node, in a namespace of their own, and the reports of the node's agent."""

    space: Workspace
    bus: NatsServer
    node: str = NODE

    def start(self, *names: str) -> None:
        """Create pods of these names and wait until they are ready."""
        port = {"name": "http", "containerPort": 8080}
        spec = {"nodeName": self.node, "containers": [{"name": "game", "image": "game:1", "ports": [port]}]}
        pods = [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "game"}}, "spec": spec}
            for name in names
        ]
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
        self.space.create(listed)
        self.space.until(lambda: all(is_ready(self.space.pod(name)) for name in names))

    def observed(self, name: str = "m", **fields: object) -> Json:
        """Wait until the newest spec is everywhere and the status has these fields, a count of 0 when it is absent."""

        def holds() -> bool:
            status = self.space.status(name)
            return bool(status) and all(status.get(field, 0) == value for field, value in fields.items())

        self.space.until(holds)
        return self.space.status(name)

    def probes(self, part: str = "spec") -> dict[str, Json]:
        """Return the entries of the node for pods of the namespace, by the pods' names."""
        found = self.space.read("nodepodprobe", self.node).get(part, {})
        entries = found.get("podProbes" if part == "spec" else "podProbeStatuses", [])
        return {entry["name"]: entry for entry in entries if entry["namespace"] == self.space.name}

    def say(self, **states: tuple[str, str]) -> None:
        """Report (state, message) by `pod__marker__probe` as the node's agent, and expect that it is accepted."""
        answer = self.send(statuses(self.space.pods, **states))
        assert answer.accepted, answer

    def send(self, status: NodePodProbeStatus, *, sender: str = "", about: str = "", uid: str = "") -> Answer:
        """Return the answer to a report of `sender` about `about`; both are the node by default."""
        sender, about = sender or self.node, about or self.node
        uid = uid or self.space.read("nodepodprobe", about)["metadata"]["uid"]
        return report(self.bus, sender, NodePodProbeReport(uid=uid, status=status), about)

    def shows(self, name: str, *marks: object) -> None:
        """Wait until the pod has these marks; that takes no longer than the write of one pod after the answer."""
        self.space.until(lambda: self.marks(name) == marks, 1.0)

    def marks(self, name: str) -> tuple[str, str, Json, Json]:
        """Return status and message of the condition, labels and annotations, as last seen."""
        pod = self.space.pod(name)
        found, meta = condition(pod, "game.io/idle"), pod["metadata"]
        labels = {key: value for key, value in meta["labels"].items() if key == "idle"}
        return found.get("status", ""), found.get("message", ""), labels, meta.get("annotations", {})


@pytest.fixture
def game(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Game]:
    """Yield a fresh namespace, named after the test."""
    with watched(shared.cluster, request.node.nodeid, POD_PROBE_MARKER) as space:
        yield Game(space, shared.nats)
