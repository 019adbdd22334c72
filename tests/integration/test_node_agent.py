"""The agent as a process of its own, on a real nats-server and a runtime's socket: what it costs."""

import asyncio
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest_asyncio

from flotilla_common.api.core import Container, ContainerStatus, Env, EnvSource, FieldRef, Pod, PodSpec, PodStatus
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.nodeimage.types import (
    NODE_IMAGE,
    ImageSpec,
    ImageTag,
    NodeImage,
    NodeImageSpec,
    NodeImageStatus,
)
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from flotilla_common.node.reports import NODE_IMAGES, PODS, Answer, NodeImageReport, PodReport
from flotilla_common.node.serving import Sender, serve_reports
from flotilla_watcher.node_readers import serve_node_readers
from tests.support.broker import Broker, BusAt, broker
from tests.support.cluster import eventually
from tests.support.fake_cri import FakeCri, served
from tests.support.fleet import cpu_seconds

NODE = "node-1"
PODS_ON_NODE = 100
IMAGES = 20
QUIET = 10.0  # seconds


class Services:
    """Watcher and jobs, as far as one agent needs them."""

    def __init__(self, bus: NatsBus) -> None:
        self.bus = bus
        self.pods: dict[str, PodReport] = {}
        self.image = NodeImageStatus()

    async def open(self) -> None:
        for resource in (POD, NODE_IMAGE, RECREATE_REQUEST):
            await self.bus.ensure_stream(subjects.node_stream(resource))
        await serve_node_readers(self.bus, dict.fromkeys((POD, NODE_IMAGE, RECREATE_REQUEST), self))
        await serve_reports(self.bus, PODS, PodReport, self._pod)
        await serve_reports(self.bus, NODE_IMAGES, NodeImageReport, self._image)

    async def serve(self, node: str) -> None:
        """Its copies are published anyway."""

    async def put(self, resource: Resource, namespace: str, name: str, obj: object) -> None:
        headers = {subjects.OP: subjects.ADDED, subjects.EPOCH: "e1"}
        await self.bus.publish(subjects.node_object(NODE, resource, namespace, name), msgspec.json.encode(obj), headers)

    async def mark(self) -> None:
        for resource in (POD, NODE_IMAGE, RECREATE_REQUEST):
            marker = subjects.Marker(epoch="e1", state=subjects.SYNCED, rv="1")
            await self.bus.publish(subjects.node_marker(resource, NODE), msgspec.json.encode(marker), {})

    async def _pod(self, sender: Sender, report: PodReport) -> Answer:
        self.pods[sender.name] = report
        return Answer(accepted=True, resource_version="2")

    async def _image(self, sender: Sender, report: NodeImageReport) -> Answer:
        self.image = report.status
        return Answer(accepted=True, resource_version="2")


class Agent:
    """The process."""

    def __init__(self, folder: Path, bus: BusAt, port: int) -> None:
        self._port = port
        self._log = (folder / "agent.log").open("wb")
        argv = [sys.executable, "-m", "flotilla_nodeagent", f"--node={NODE}", f"--nats={bus.nats_url}"]
        argv += [f"--creds={bus.nats_creds}"]
        argv += [f"--cri-socket={folder / 'cri.sock'}", f"--node-state-dir={folder / 'state'}"]
        argv += [f"--health-port={port}", "--metrics-port=0"]
        self.process = subprocess.Popen(argv, stdout=self._log, stderr=self._log)

    def ready(self) -> bool:
        """It holds copies of everything."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5) as reply:
                return reply.status == 200
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            pass  # it does not listen yet
        return False

    @property
    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)

    @property
    def rss_mib(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024

    def stop(self) -> int:
        os.kill(self.process.pid, signal.SIGTERM)
        code = self.process.wait(10)
        self._log.close()
        return code


@pytest_asyncio.fixture
async def nats(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker(tmp_path) as running:
        yield running


def a_pod(number: int, container_id: str) -> Pod:
    label = EnvSource(field_ref=FieldRef(field_path="metadata.labels['conf']"))
    return Pod(
        metadata=ObjectMeta(
            name=f"p{number}", namespace="x", uid=f"uid{number}", resource_version="1", labels={"conf": "1"}
        ),
        spec=PodSpec(
            node_name=NODE, containers=[Container(name="app", image="i", env=[Env(name="A", value_from=label)])]
        ),
        status=PodStatus(container_statuses=[ContainerStatus(name="app", container_id=f"containerd://{container_id}")]),
    )


async def test_what_an_agent_costs(nats: Broker, tmp_path: Path, unused_tcp_port: int) -> None:
    cri, bus, clock = FakeCri(), nats.bus(), SystemClock()
    services = Services(bus)
    await services.open()
    await services.mark()
    async with served(cri, tmp_path / "cri.sock"):
        agent = Agent(tmp_path, nats.people, unused_tcp_port)
        try:
            # Pods that are there before the agent are reported over a minute: these come after it.
            async with asyncio.timeout(60):
                while not await asyncio.to_thread(agent.ready):
                    await clock.sleep(0.1)
            for number in range(PODS_ON_NODE):
                await services.put(POD, "x", f"p{number}", a_pod(number, cri.add("app", f"uid{number}")))
            await eventually(lambda: len(services.pods) == PODS_ON_NODE, 200)
            await clock.sleep(2)
            before = agent.cpu
            await clock.sleep(QUIET)
            idle = (agent.cpu - before) / QUIET
            before = agent.cpu
            tags = [ImageTag(tag=f"v{number}") for number in range(IMAGES)]
            image = NodeImage(
                metadata=ObjectMeta(name=NODE, uid="n1", resource_version="1"),
                spec=NodeImageSpec(images={"nginx": ImageSpec(tags=tags)}),
            )
            await services.put(NODE_IMAGE, "", NODE, image)
            await eventually(lambda: services.image.succeeded == IMAGES)
            per_pull = (agent.cpu - before) / IMAGES
            figures = {"idle": idle, "per pull, ms": per_pull * 1000, "MiB": agent.rss_mib}
            print(figures)
            assert idle <= 0.01, figures
            assert per_pull <= 0.05, figures
            assert agent.rss_mib <= 60, figures
        finally:
            assert agent.stop() == 0, (tmp_path / "agent.log").read_text()
            await bus.close()
