"""The jobs service where only some kinds are installed and enabled (install.md §6, nodeagent.md §7).

It waits for none of the others, and still answers agents' reports on pods.
"""

import asyncio
import dataclasses

import msgspec
import pytest

from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.resources import EVENT, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.node.reports import EVENTS, PODS, Answer, EventReport, PodReport, Report
from tests.simulation.bus.client import SimulatedBus
from tests.simulation.loop import Domain
from tests.simulation.world import SETTINGS, World, simulate

NODE, NAME = "node-1", "alone"
PULLS = (NODE_IMAGE, IMAGE_PULL_JOB, IMAGE_LIST_PULL_JOB)
META = '{"containers":[{"name":"app"}]}'


async def pod(world: World) -> str:
    """Create a pod without a controller on the node; return its uid."""
    spec = {"nodeName": NODE, "containers": [{"name": "app", "image": "registry.test/app"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "namespace": "shop"}, "spec": spec}
    created = await world.api.create(POD, "shop", msgspec.json.encode(body))
    return str(msgspec.json.decode(created)["metadata"]["uid"])


async def report(world: World, kind: str, body: Report | EventReport) -> Answer:
    """Report as the node's agent; return the answer."""
    context = Domain("agent").context()
    prefix = subjects.node_inbox(NODE)
    bus = SimulatedBus(world.loop, world.bus, "agent", world.clock, context, inbox_prefix=prefix)
    while not bus.connected:
        await world.clock.sleep(0.1)
    subject = subjects.report(NODE, kind, "shop", NAME)
    return msgspec.json.decode(await bus.request(subject, msgspec.json.encode(body), 6.0), type=Answer)


async def restart_without(world: World, missing: tuple[Resource, ...]) -> None:
    """Restart the service on a cluster without these kinds."""
    for resource in missing:
        world.server.undefine(resource)
    process = world.processes["jobs-0"]
    await process.stop()
    process.start()
    async with asyncio.timeout(30):
        while not process.ready:
            await world.clock.sleep(0.1)


@pytest.mark.parametrize(
    ("enabled", "missing"),
    [
        pytest.param("CloneSet", (*PULLS, RECREATE_REQUEST), id="none of them"),
        pytest.param("ContainerRecreateRequest", PULLS, id="restarts only"),
        pytest.param(",".join(resource.kind for resource in PULLS), (RECREATE_REQUEST,), id="pulls only"),
    ],
)
def test_reports_on_pods_are_served(enabled: str, missing: tuple[Resource, ...]) -> None:
    async def body(world: World) -> None:
        await restart_without(world, missing)
        uid = await pod(world)
        await world.settle()
        answer = await report(world, PODS, PodReport(uid=uid, runtime_containers_meta=META))
        assert answer.accepted, answer
        stored = world.server.store.table(POD).objects["shop", NAME].document
        assert stored["metadata"]["annotations"][RUNTIME_CONTAINERS_META] == META
        event = EventReport(kind="Pod", uid=uid, component="kruise-daemon-crr", reason="Killing")
        assert (await report(world, EVENTS, event)).accepted
        await world.settle()
        events = [one.document for one in world.server.store.table(EVENT).objects.values()]
        assert ("Killing", NAME) in {(one["reason"], one["involvedObject"]["name"]) for one in events}

    settings = dataclasses.replace(SETTINGS, custom_resource_enable=enabled)
    simulate(body, replicas={"watcher": 1, "jobs": 1}, settings=settings)


@pytest.mark.parametrize("gates", ["KruiseDaemon=false", "DaemonWatchingPod=false"])
def test_without_anything_to_do_it_idles(gates: str) -> None:
    async def body(world: World) -> None:
        before = len(world.history.calls)
        await restart_without(world, (*PULLS, RECREATE_REQUEST))
        await world.clock.sleep(10)
        assert not [call for call in world.history.calls[before:] if call.writer == "jobs-0"]

    settings = dataclasses.replace(SETTINGS, custom_resource_enable="CloneSet", feature_gates=gates)
    simulate(body, replicas={"watcher": 1, "jobs": 1}, settings=settings)
