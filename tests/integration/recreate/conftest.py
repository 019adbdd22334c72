"""One namespace per scenario, and agents whose reports a test defines.

The nodes are fake: their kubelets start pods, and a scenario restarts containers in the pod's status.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.containerrecreaterequest.types import RecreateState
from flotilla_common.bus import subjects
from flotilla_common.bus.nats import NatsBus
from flotilla_common.node.reports import RECREATE_REQUESTS, Answer, RecreateReport
from tests.support.broker import people
from tests.support.cluster import Cluster, Kubectl, eventually
from tests.support.fleet import Fleet
from tests.support.objects import Objects
from tests.support.rest import STRATEGIC
from tests.support.workspace import new_namespace
from tests.testkit.documents import Json

NODE = "node-0"
PATIENCE = 60.0  # seconds; far above what anything here takes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bus(shared: Fleet) -> AsyncIterator[NatsBus]:
    """Connect to the bus as the agent of NODE."""
    client = NatsBus(people(shared.nats), name="agent", inbox_prefix=subjects.node_inbox(NODE))
    await client.ensure_stream(subjects.ACT_STREAM)  # returns when it is connected
    yield client
    await client.close()


@pytest.fixture
def space(shared: Fleet, bus: NatsBus, request: pytest.FixtureRequest) -> "Space":
    """Return a fresh namespace, named after the test."""
    return Space(shared.cluster, bus, new_namespace(shared.cluster, request.node.nodeid))


class Space(Kubectl):
    """One namespace: pods, requests, and the agent of NODE."""

    def __init__(self, cluster: Cluster, bus: NatsBus, name: str) -> None:
        self.cluster = cluster
        self.bus = bus
        self.name = name

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.cluster.kubectl("-n", self.name, *arguments, stdin=stdin)

    @cached_property
    def api_objects(self) -> Objects:
        return self.cluster.api_objects.within(self.name)

    async def pod(self, name: str = "web", *, gated: bool = True) -> Json:
        """Create a running pod with containers app and side."""
        hook = {"preStop": {"httpGet": {"path": "/bye", "port": "http"}}}
        ports = [{"name": "http", "containerPort": 80}]
        spec: Json = {
            "nodeName": NODE,
            "containers": [
                {"name": "app", "image": "nginx:alpine", "lifecycle": hook, "ports": ports},
                {"name": "side", "image": "busybox:1"},
            ],
        }
        if gated:
            spec["readinessGates"] = [{"conditionType": "KruisePodReady"}]
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self.create(document)
        await eventually(lambda: self.condition(name, "Ready").get("status") == "True", PATIENCE)
        return self.read("pod", name)

    def condition(self, pod: str, kind: str) -> Json:
        """Return a pod's condition; {} if absent."""
        conditions = self.read("pod", pod)["status"].get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})

    def restart(self, container: str, pod: str = "web", *, ready: bool = True) -> str:
        """Report a restarted container, as the kubelet does; return the new ID."""
        statuses = self.read("pod", pod)["status"]["containerStatuses"]
        status = next(one for one in statuses if one["name"] == container)
        count = status["restartCount"] + 1
        identity = f"{status['containerID'].partition('-')[0]}-{count}"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status |= {
            "containerID": identity,
            "restartCount": count,
            "ready": ready,
            "state": {"running": {"startedAt": now}},
        }
        body = {"status": {"containerStatuses": statuses}}
        self.send_patch("pod", pod, body, kind=STRATEGIC, subresource="status")
        return identity

    def request(self, *containers: str, name: str = "restart", pod: str = "web", **fields: Any) -> Json:
        """Create a request as `kubectl create` does; return the created object."""
        return self.api_objects.create(request(*containers, name=name, pod=pod, **fields))

    def status(self, name: str = "restart") -> Json:
        return self.read("crr", name).get("status", {})

    async def report(
        self,
        *states: RecreateState,
        phase: str = "Recreating",
        message: str = "",
        name: str = "restart",
        uid: str = "",
        node: str = NODE,
    ) -> Answer:
        """Send a report as the agent of a node; return the answer."""
        uid = uid or self.read("crr", name)["metadata"]["uid"]
        told = RecreateReport(uid=uid, phase=phase, message=message, states=list(states) or None)
        subject = subjects.report(node, RECREATE_REQUESTS, self.name, name)
        return msgspec.json.decode(await self.bus.request(subject, msgspec.json.encode(told), 10), type=Answer)

    async def accepted(self, *states: RecreateState, **words: Any) -> None:
        """Send reports as the agent until one is accepted."""
        answer = await self.report(*states, **words)
        while answer.again:  # what an agent does on a busy machine
            answer = await self.report(*states, **words)
        assert answer.accepted, answer


def state(name: str, phase: str, message: str = "", *, killed: bool = False) -> RecreateState:
    return RecreateState(name=name, phase=phase, message=message, is_killed=killed)


def request(*containers: str, name: str = "restart", pod: str = "web", version: str = "v1beta1", **spec: Any) -> Json:
    """Return a request as users write it."""
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "ContainerRecreateRequest",
        "metadata": {"name": name},
        "spec": {"podName": pod, "containers": [{"name": one} for one in containers], **spec},
    }
