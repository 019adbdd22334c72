"""A node agent as a process of its own, with a runtime's socket and a bus, and just enough of watcher and services."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import msgspec

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImageStatus
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbeStatus
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.nats import NatsBus
from flotilla_common.node.reports import (
    NODE_IMAGES,
    NODE_POD_PROBES,
    PODS,
    Answer,
    NodeImageReport,
    NodePodProbeReport,
    PodReport,
)
from flotilla_common.node.serving import Sender, serve_reports
from flotilla_watcher.readers import serve_node_readers
from tests.support.broker import BusAt
from tests.support.fleet import cpu_seconds

NODE = "node-1"
READ = (POD, NODE_IMAGE, RECREATE_REQUEST, NODE_POD_PROBE)
"""Resources that an agent reads."""


class Services:
    """The parts of watcher and jobs that one agent needs."""

    def __init__(self, bus: NatsBus) -> None:
        self.bus = bus
        self.pods: dict[str, PodReport] = {}
        self.image = NodeImageStatus()
        self.probes = NodePodProbeStatus()
        self.probe_reports = 0

    async def open(self) -> None:
        for resource in READ:
            await self.bus.ensure_stream(subjects.node_stream(resource))
        await serve_node_readers(self.bus, dict.fromkeys(READ, self))
        await serve_reports(self.bus, PODS, PodReport, self._pod)
        await serve_reports(self.bus, NODE_IMAGES, NodeImageReport, self._image)
        await serve_reports(self.bus, NODE_POD_PROBES, NodePodProbeReport, self._probes)

    async def serve(self, node: str) -> None:
        """Do nothing: copies are published anyway."""

    async def put(self, resource: Resource, namespace: str, name: str, obj: object) -> None:
        headers = {subjects.OP: subjects.ADDED, subjects.EPOCH: "e1"}
        await self.bus.publish(subjects.node_object(NODE, resource, namespace, name), msgspec.json.encode(obj), headers)

    async def mark(self) -> None:
        for resource in READ:
            marker = subjects.Marker(epoch="e1", state=subjects.SYNCED, rv="1")
            await self.bus.publish(subjects.node_marker(resource, NODE), msgspec.json.encode(marker), {})

    async def _pod(self, sender: Sender, report: PodReport) -> Answer:
        self.pods[sender.name] = report
        return Answer(accepted=True, resource_version="2")

    async def _image(self, sender: Sender, report: NodeImageReport) -> Answer:
        self.image = report.status
        return Answer(accepted=True, resource_version="2")

    async def _probes(self, sender: Sender, report: NodePodProbeReport) -> Answer:
        self.probes = report.status
        self.probe_reports += 1
        return Answer(accepted=True, resource_version="2")


class Agent:
    """The process."""

    def __init__(self, folder: Path, bus: BusAt, port: int, *, node: str = NODE, credentials: str = "") -> None:
        """Start the agent with the file `credentials` (those of the node), or else with unlimited rights."""
        self._port = port
        self._log = (folder / "agent.log").open("wb")
        argv = [sys.executable, "-m", "flotilla_nodeagent", f"--node={node}", f"--nats={bus.nats_url}"]
        argv += [f"--creds={credentials or bus.nats_creds}"]
        argv += [f"--cri-socket={folder / 'cri.sock'}", f"--node-state-dir={folder / 'state'}"]
        argv += [f"--health-port={port}", "--metrics-port=0"]
        self.process = subprocess.Popen(argv, stdout=self._log, stderr=self._log)

    def ready(self) -> bool:
        """Report whether the agent holds copies of everything."""
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
