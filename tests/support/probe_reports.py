"""Reports of probes, sent by a test in place of a node's agent."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbeStatus, PodProbeStatus, ProbeState
from flotilla_common.bus import subjects
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from flotilla_common.node.reports import NODE_POD_PROBES, Answer, NodePodProbeReport
from flotilla_dev.cluster.nats import NatsServer
from flotilla_insight.bus.connection import connected
from tests.support.broker import people
from tests.testkit.documents import Json


def statuses(pods: Mapping[str, Json], **states: tuple[str, str]) -> NodePodProbeStatus:
    """Return a status: (state, message) of one probe by `pod__marker__probe`. `pods`: by name."""
    now, entries = datetime.now(UTC).replace(microsecond=0), list[PodProbeStatus]()
    for place, (state, message) in states.items():
        name, marker, probe = place.split("__")
        meta = pods[name]["metadata"]
        one = ProbeState(name=f"{marker}#{probe}", state=state, message=message, last_probe_time=now)
        entry = PodProbeStatus(name=name, namespace=meta["namespace"], uid=meta["uid"], probe_states=[one])
        entries.append(entry)
    return NodePodProbeStatus(pod_probe_statuses=entries)


def report(server: NatsServer, node: str, body: NodePodProbeReport, about: str = "") -> Answer:
    """Send the report of a node, about its own NodePodProbe or that of another one; return the answer."""

    async def ask() -> bytes:
        inbox = subjects.node_inbox(node)
        bus = NatsBus(people(server), name=node, clock=SystemClock(), inbox_prefix=inbox)
        try:
            await connected(bus, SystemClock(), 30)
            subject = subjects.report(node, NODE_POD_PROBES, "", about or node)
            return await bus.request(subject, msgspec.json.encode(body), 6)
        finally:
            await bus.close()

    return msgspec.json.decode(asyncio.run(ask()), type=Answer)
