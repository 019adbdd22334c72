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

from flotilla_common.api.kinds.nodepodprobe.types import (
    NODE_POD_PROBE,
    SUCCEEDED,
    NodePodProbe,
    NodePodProbeSpec,
    NodeProbe,
    PodProbe,
)
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.clock import SystemClock
from tests.perf.limits import within
from tests.support.broker import broker
from tests.support.cluster import eventually
from tests.support.fake_cri import FakeCri, served
from tests.support.lone_agent import NODE, Agent, Services

PODS = 100
SECONDS = 30.0
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok"

pytestmark = pytest.mark.timeout(900)


@asynccontextmanager
async def web_server(host: str) -> AsyncIterator[int]:
    """A page on a port of this address."""

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
    """An address of this machine that could be a pod's."""
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
    """How many probes are reported as Succeeded."""
    pods = services.probes.pod_probe_statuses
    return sum(one.state == SUCCEEDED for pod in pods for one in pod.probe_states)


def asked(cri: FakeCri, method: str) -> int:
    return sum(one == method for one, _ in cri.asked)
