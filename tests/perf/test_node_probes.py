"""The figures of probes on a node (docs/performance.md), each against its limit in thresholds.toml.

What an agent takes for many probes is measured on the process itself, beside a runtime's socket and servers in the
test's process. How soon a change is seen on the pod is measured with everything that it passes: runtime, agent, NATS,
the policy service, apiserver.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from flotilla_cli.nats_config import BusUsers
from flotilla_common.api.kinds.nodepodprobe.types import (
    NODE_POD_PROBE,
    SUCCEEDED,
    NodePodProbe,
    NodePodProbeSpec,
    NodeProbe,
    PodProbe,
)
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.resources import POD
from flotilla_common.clock import SystemClock
from flotilla_common.kube.client import KubeClient
from flotilla_dev.cluster.nats import reload_users
from tests.perf.limits import within
from tests.perf.rollouts import NAMESPACE, Bench, bench
from tests.support.broker import broker, people
from tests.support.cluster import eventually
from tests.support.fake_cri import FakeCri, served
from tests.support.fleet import SERVICES
from tests.support.lone_agent import NODE, Agent, Services
from tests.testkit.documents import typed

PODS = 100
SECONDS = 30.0
CHANGES = 60
PERIOD = 1.0
REST = 1.5
"""Seconds between two changes: longer than an agent's pause between reports."""
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok"

pytestmark = pytest.mark.timeout(900)


@asynccontextmanager
async def web_server(host: str) -> AsyncIterator[int]:
    """Serve a page on a port of this address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(PAGE)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, host, 0, backlog=1000)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def own_address() -> str:
    """Return an address of this machine that could be a pod's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect(("192.0.2.1", 9))
        return asking.getsockname()[0]


def probe(name: str, **document: object) -> NodeProbe:
    raw = msgspec.json.encode(document | {"periodSeconds": 1})
    return NodeProbe(name=f"m#{name}", container_name="app", probe=msgspec.Raw(raw))


async def test_what_200_probes_of_a_second_cost(tmp_path: Path, unused_tcp_port: int) -> None:
    cri, clock, ip = FakeCri(), SystemClock(), own_address()
    cri.ip = ip
    async with broker(tmp_path) as nats, web_server(ip) as port, served(cri, tmp_path / "cri.sock"):
        bus = nats.bus()
        services = Services(bus)
        await services.open()
        await services.mark()
        probes = [probe("tcp", tcpSocket={"port": port}), probe("http", httpGet={"port": port, "path": "/healthz"})]
        pods = [PodProbe(name=f"pod-{n}", namespace="x", uid=f"uid{n}", ip=ip, probes=probes) for n in range(PODS)]
        for n in range(PODS):
            cri.add("app", f"uid{n}")
        meta = ObjectMeta(name=NODE, uid="n1", resource_version="1")
        wanted = NodePodProbe(metadata=meta, spec=NodePodProbeSpec(pod_probes=pods))
        await services.put(NODE_POD_PROBE, "", NODE, wanted)
        agent = Agent(tmp_path, nats.people, unused_tcp_port)
        try:
            await eventually(lambda: succeeded(services) == 2 * PODS)
            await clock.sleep(3)
            before, lists, reports = agent.cpu, asked(cri, "ListContainers"), services.probe_reports
            await clock.sleep(SECONDS)
            cores = (agent.cpu - before) / SECONDS
            print(f"{(asked(cri, 'ListContainers') - lists) / SECONDS:.1f} lists per second")
            assert services.probe_reports == reports
            within("probes_agent_millicores", cores * 1000)
            within("probes_agent_mib", agent.rss_mib)
        finally:
            assert agent.stop() == 0, (tmp_path / "agent.log").read_text()
            await bus.close()


def succeeded(services: Services) -> int:
    """Return how many probes are reported as Succeeded."""
    pods = services.probes.pod_probe_statuses
    return sum(one.state == SUCCEEDED for pod in pods for one in pod.probe_states)


def asked(cri: FakeCri, method: str) -> int:
    return sum(one == method for one, _ in cri.asked)


class Labels:
    """Times at which pods got and lost their label, as a watch shows them."""

    def __init__(self) -> None:
        self.marked: dict[str, bool] = {}
        self.changed_at: dict[str, float] = {}

    async def follow(self, api: KubeClient, version: str) -> None:
        """Watch for as long as the test runs."""
        async for event in api.watch(POD, version, namespace=NAMESPACE):
            if event.type == "BOOKMARK":
                continue
            meta = metadata_of(event.object)
            marked = meta.labels.get("idle") == "yes"
            if self.marked.get(meta.name) != marked:
                self.marked[meta.name], self.changed_at[meta.name] = marked, SystemClock().monotonic()


@asynccontextmanager
async def node_with_pods(site: Bench, folder: Path, cri: FakeCri, port: int) -> AsyncIterator[dict[str, str]]:
    """Create pods on a fake node whose containers are in a runtime of the test, with the agent beside it.

    Yields their containers by name.
    """
    nats = site.flotilla.nats
    credentials = folder / "node-0.creds"
    credentials.write_text(BusUsers(site.cluster.plane.places.state_dir).add_node("node-0", SystemClock()))
    reload_users(nats.process)
    for number in range(CHANGES // 3):
        container = {"name": "app", "image": "app:v1"}
        document = typed(
            POD, f"game-{number}", labels={"app": "game"}, spec={"nodeName": "node-0", "containers": [container]}
        )
        await site.api.create(POD, NAMESPACE, msgspec.json.encode(document))
    await eventually(lambda: len(running(site)) == CHANGES // 3)
    containers = {name: cri.add("app", uid) for name, uid in running(site).items()}
    agent = Agent(folder, people(nats), port, node="node-0", credentials=str(credentials))
    try:
        yield containers
    finally:
        assert agent.stop() == 0, (folder / "agent.log").read_text()


def running(site: Bench) -> dict[str, str]:
    """Return the uids of the pods that run, by name."""
    items = site.cluster.read("pods", "-n", NAMESPACE)["items"]
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in items if one["status"]["phase"] == "Running"}


async def test_a_change_and_its_label(tmp_path: Path, unused_tcp_port: int) -> None:
    cri, clock, labels = FakeCri(), SystemClock(), Labels()
    async with (
        bench(tmp_path, nodes=1, services=(*SERVICES, "jobs", "policy")) as site,
        served(cri, tmp_path / "cri.sock"),
        node_with_pods(site, tmp_path, cri, unused_tcp_port) as containers,
    ):
        version = (await site.api.list(POD, NAMESPACE)).resource_version
        watching = asyncio.create_task(labels.follow(site.api, version))
        await site.api.create(POD_PROBE_MARKER, NAMESPACE, msgspec.json.encode(MARKER))
        await eventually(lambda: sum(labels.marked.values()) == len(containers))
        took: list[float] = []
        for number in range(CHANGES):
            name = list(containers)[number % len(containers)]
            was = labels.marked[name]
            cri.exits[containers[name]], since = int(was), clock.monotonic()
            await eventually(lambda name=name, was=was: labels.marked[name] != was, 30)
            took.append(labels.changed_at[name] - since)
            await clock.sleep(REST)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    took.sort()
    print(f"median {took[len(took) // 2]:.3f} s, most {took[-1]:.3f} s after the change, with a period of {PERIOD:g} s")
    within("probes_label_p99_seconds", took[int(len(took) * 0.99)] - PERIOD)


MARKER = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "PodProbeMarker",
    "metadata": {"name": "m"},
    "spec": {
        "selector": {"matchLabels": {"app": "game"}},
        "probes": [
            {
                "name": "idle",
                "containerName": "app",
                "probe": {"exec": {"command": ["idle"]}, "periodSeconds": 1},
                "markerPolicy": [{"state": "Succeeded", "labels": {"idle": "yes"}}],
            }
        ],
    },
}
