"""The node agent on one page: what it reads, what it does, and how the parts hang together.

It knows NATS and the container runtime, and nothing of Kubernetes but copies of objects.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.resources import POD
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, Entropy
from flotilla_common.settings import Settings
from flotilla_nodeagent.channel.channel import Channel
from flotilla_nodeagent.channel.reporting import Reporter
from flotilla_nodeagent.credentials.keyring import LoginSource
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.endpoints import Status
from flotilla_nodeagent.images.nodeimage import NodeImages
from flotilla_nodeagent.images.pull import Puller
from flotilla_nodeagent.images.secrets import Secrets
from flotilla_nodeagent.meta.pods import Pods
from flotilla_nodeagent.meta.restarts import Restarts
from flotilla_nodeagent.recreate.requests import Requests
from flotilla_nodeagent.stopping.journal import Journal
from flotilla_nodeagent.stopping.stop import Stopper


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
) -> None:
    """Work for the node until cancelled. `node_logins`: registry logins that are tried, in this order, after the pull
    secrets. `journal` opens the records that an earlier process left in a folder."""
    gates, state = settings.gates(), Path(settings.node_state_dir)
    reporter = Reporter(bus, settings.node)
    requests, restarts = journal(state / "recreate"), journal(state / "restarts")
    channel = Channel(bus, clock, entropy, settings.node, status)
    environments = Restarts(
        runtimes=runtimes, stopper=Stopper(clock, restarts), reporter=reporter, clock=clock, entropy=entropy
    )
    parts: list[Part] = [
        NodeImages(
            copies=channel.copies(NODE_IMAGE, NodeImage),
            node=settings.node,
            puller=Puller(runtimes.primary, Secrets(reporter, clock, entropy), node_logins, clock),
            reporter=reporter,
            clock=clock,
            entropy=entropy,
            most=settings.max_workers_for_pull_image,
        ),
        Requests(
            copies=channel.copies(RECREATE_REQUEST, ContainerRecreateRequest),
            runtimes=runtimes,
            stopper=Stopper(clock, requests),
            reporter=reporter,
            clock=clock,
            entropy=entropy,
        ),
        environments,
    ]
    if gates.on("DaemonWatchingPod"):
        pods = Pods(
            copies=channel.copies(POD, Pod),
            runtimes=runtimes,
            restarts=environments,
            reporter=reporter,
            clock=clock,
            entropy=entropy,
            env=gates.on("InPlaceUpdateEnvFromMetadata"),
        )
        parts.append(pods)
    for one in (requests, restarts):
        one.load()
    async with asyncio.TaskGroup() as group:
        for part in (runtimes, channel, *parts):
            group.create_task(part.run())


class Part(Protocol):
    """Something that runs until it is cancelled."""

    async def run(self) -> None: ...
