"""One node: the images that its runtime has, and the disk that its agent writes to. Both outlive every agent."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.kinds.nodepodprobe.types import (
    FAILED,
    NODE_POD_PROBE,
    SUCCEEDED,
    NodePodProbe,
    NodeProbe,
    ProbeSpec,
)
from flotilla_common.control.plan import Json
from flotilla_nodeagent.probes.definitions import Key
from flotilla_nodeagent.probes.nodepodprobe import Results, StoredResult
from flotilla_nodeagent.stop_journal import Entry, Journal
from tests.simulation.cluster.cluster import Cluster

T = TypeVar("T")

CALL_SECONDS = 0.0005
"""Fake seconds of one way between agent and runtime."""

PULL_SECONDS = 0.2
"""Fake seconds of a pull, unless a scenario sets others."""


class Socket(Protocol):
    """The way between an agent and its runtime."""

    async def carry(self, agent: str, method: str, serve: Callable[[], Awaitable[T]]) -> T:
        """Carry the call, call `serve`, carry the reply."""
        ...


class PlainSocket:
    """Takes its time, and nothing else."""

    async def carry(self, agent: str, method: str, serve: Callable[[], Awaitable[T]]) -> T:
        del agent, method
        await asyncio.sleep(CALL_SECONDS)
        reply = await serve()
        await asyncio.sleep(CALL_SECONDS)
        return reply


class Machine:
    """The world of one run (see the module)."""

    def __init__(self, name: str, agent: str, cluster: Cluster, socket: Socket) -> None:
        self.name = name
        self.agent = agent
        """The process that works here."""
        self.cluster = cluster
        self.socket = socket
        self.images: dict[str, int] = {}
        """References of what is there, with how often each was pulled."""
        self.pulls: Counter[str] = Counter()
        """Begun ones too, by reference."""
        self.stops: list[tuple[str, str]] = []
        """(pod, container) of every stop that reached the runtime."""
        self.passwords: dict[str, str] = {}
        """The password that the registry wants, by repository."""
        self.broken: set[str] = set()
        """References that no registry has."""
        self.pull_seconds = PULL_SECONDS
        self.answers: dict[str, tuple[int, str]] = {}
        """By command of a probe: its exit code and its output; other commands succeed without output."""
        self.files: dict[Path, dict[tuple[str, str], Entry]] = {}
        self.probe_results: list[StoredResult] = []

    def wanted(self) -> bool:
        """Report whether a pull, a probe or a report is due."""
        return self._pull_wanted() or self._probe_wanted()

    def _probe_wanted(self) -> bool:
        """Report whether the status of the NodePodProbe differs from the results of its probes."""
        document = self.cluster.kubelets.stored(("", self.name), NODE_POD_PROBE)
        if document is None or self.name in self.cluster.kubelets.dead:
            return False
        found = msgspec.json.decode(msgspec.json.encode(document), type=NodePodProbe)
        running = {pod["metadata"]["uid"] for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]}
        for entry in found.spec.pod_probes if running else ():
            told = {state.name: (state.state, state.message) for state in found.results_of(entry.uid)}
            if entry.uid in running and any(told.get(one.name) != self._answer(one) for one in entry.probes):
                return True
        return False

    def _answer(self, probe: NodeProbe) -> tuple[str, str]:
        spec = msgspec.json.decode(probe.probe, type=ProbeSpec)
        code, text = self.answers.get(" ".join(spec.exec.command if spec.exec is not None else ()), (0, ""))
        return (SUCCEEDED if code == 0 else FAILED), text

    def _pull_wanted(self) -> bool:
        """Report whether the status of the NodeImage is behind its spec."""
        document = self.cluster.kubelets.stored(("", self.name), NODE_IMAGE)
        if document is None or self.name in self.cluster.kubelets.dead:
            return False
        image = msgspec.convert(document, type=NodeImage)
        tasks = [(image.entry(name, tag.tag), tag) for name, spec in image.spec.images.items() for tag in spec.tags]
        return image.status.desired != len(tasks) or any(
            entry is None or entry.version != tag.version or entry.completion_time is None for entry, tag in tasks
        )

    def journal(self, folder: Path) -> Journal:
        """Return the journal in a folder of this node's disk."""
        return DiskJournal(folder, self.files)

    def results(self, folder: Path) -> Results:
        """Return the results of probes on this node's disk."""
        return DiskResults(folder, self.probe_results)

    def pods(self) -> list[Json]:
        """Return the pods that the kubelet of this node runs."""
        return [pod for _, pod in self.cluster.kubelets.all() if pod["spec"].get("nodeName") == self.name]


class DiskJournal(Journal):
    """A journal on the disk of a machine: what was put is there when an agent starts again."""

    def __init__(self, folder: Path, files: dict[Path, dict[tuple[str, str], Entry]]) -> None:
        super().__init__(folder)
        self._files = files.setdefault(folder, {})

    def load(self) -> None:
        self._entries.update(self._files)

    def put(self, cause: str, container: str, entry: Entry) -> None:
        self._entries[cause, container] = self._files[cause, container] = entry

    def forget(self, cause: str) -> None:
        for key in [key for key in self._entries if key[0] == cause]:
            del self._entries[key]
            self._files.pop(key, None)


class DiskResults(Results):
    """Results of probes on the disk of a machine."""

    def __init__(self, folder: Path, kept: list[StoredResult]) -> None:
        super().__init__(folder)
        self._kept = kept

    def load(self) -> dict[Key, StoredResult]:
        return {(one.uid, one.name): one for one in self._kept}

    def keep(self, results: list[StoredResult]) -> None:
        self._kept[:] = results
