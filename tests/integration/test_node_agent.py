"""The agent as a process of its own, on a real nats-server and a runtime's socket, and its cost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from flotilla_common.api.core import Container, ContainerStatus, Env, EnvSource, FieldRef, Pod, PodSpec, PodStatus
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, ImageSpec, ImageTag, NodeImage, NodeImageSpec
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import POD
from flotilla_common.clock import SystemClock
from tests.support.broker import Broker, broker
from tests.support.cluster import eventually
from tests.support.fake_cri import FakeCri, served
from tests.support.lone_agent import NODE, Agent, Services

PODS_ON_NODE = 100
IMAGES = 20
QUIET = 10.0  # seconds


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
