"""The node agent: its parts and how they are connected.

It uses NATS and the container runtime, and nothing of Kubernetes but copies of objects.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.heartbeat import HEARTBEAT_SECONDS, NODE_AGENT, VERSION, Heartbeat
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, Entropy
from flotilla_common.settings import Settings
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.copies import Channel
from flotilla_nodeagent.credentials.keyring import LoginSource
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.endpoints import Status
from flotilla_nodeagent.images import NodeImages
from flotilla_nodeagent.pods import Pods, Restarts
from flotilla_nodeagent.probes.nodepodprobe import NodePodProbes, Results
from flotilla_nodeagent.pulling import Puller
from flotilla_nodeagent.recreate import Requests
from flotilla_nodeagent.reporting import Reporter
from flotilla_nodeagent.stop_journal import Journal
from flotilla_nodeagent.stopping import ContainerStopper


async def run(
    *,
    settings: Settings,
    bus: Bus,
    clock: Clock,
    entropy: Entropy,
    status: Status,
    runtimes: Runtimes,
    node_logins: Sequence[LoginSource] = (),
    journal: Callable[[Path], Journal] = Journal,
    results: Callable[[Path], Results] = Results,
) -> None:
    """Work for the node until cancelled.

    `node_logins` are registry logins that are tried, in this order, after the pull secrets. `journal` and `results`
    open the records that an earlier process left in a folder.
    """
    gates, state = settings.gates(), Path(settings.node_state_dir)
    context = AgentContext(
        node=settings.node,
        bus=bus,
        clock=clock,
        entropy=entropy,
        status=status,
        runtimes=runtimes,
        reporter=Reporter(bus, settings.node),
    )
    requests, restarts = journal(state / "recreate"), journal(state / "restarts")
    channel = Channel(context)
    images = channel.copies(NODE_IMAGE, NodeImage)
    recreated = channel.copies(RECREATE_REQUEST, ContainerRecreateRequest)
    environments = Restarts(context, ContainerStopper(clock, restarts))
    work = [
        partial(publish_heartbeats, context),
        runtimes.run,
        channel.run,
        NodeImages(context, images, Puller(context, node_logins), settings.max_workers_for_pull_image).run,
        Requests(context, recreated, ContainerStopper(clock, requests)).run,
        environments.run,
    ]
    if gates.on("DaemonWatchingPod"):
        env = gates.on("InPlaceUpdateEnvFromMetadata")
        work.append(Pods(context, channel.copies(POD, Pod), environments, env=env).run)
    if gates.on("PodProbeMarkerGate"):
        probes = channel.copies(NODE_POD_PROBE, NodePodProbe, optional=True)
        work.append(NodePodProbes(context, probes, results(state / "probes"), settings.node_ips).run)
    requests.load()
    restarts.load()
    async with asyncio.TaskGroup() as group:
        for part in work:
            group.create_task(part())


async def publish_heartbeats(context: AgentContext) -> None:
    """Publish every five seconds that the agent is alive, its release, and which parts are not ready.

    There is no answer, and nothing is stored; `flotilla doctor` and `flotilla tail --heartbeats` subscribe to it.
    """
    subject = subjects.heartbeat(NODE_AGENT, context.node)
    while True:
        heartbeat = Heartbeat(
            service=NODE_AGENT,
            replica=context.node,
            version=VERSION,
            at=context.clock.now(),
            waiting=context.status.waiting,
        )
        context.bus.publish_soon(subject, msgspec.json.encode(heartbeat))
        await context.clock.sleep(HEARTBEAT_SECONDS)
