"""The node's own NodePodProbe: its spec becomes probes, their results become its status (nodeagent.md §6.4).

Results are also on the node's own disk, so that a restart of the agent alone changes none of them. The status does not
contain the container and the handler of a result. With both stored, an agent that starts again keeps a result only for
the same instance of the container and the same handler. The file is written before a report. It need not survive a
power cut, after which no container is the same, so it is not flushed.
"""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from flotilla_common.api.kinds.nodepodprobe.types import (
    MESSAGE_BYTES,
    MESSAGES_BYTES,
    SUCCEEDED,
    NodePodProbe,
    NodePodProbeStatus,
    PodProbeStatus,
    ProbeState,
)
from flotilla_common.control.queue import Backoff
from flotilla_common.node.quota import Quota
from flotilla_common.node.reports import NODE_POD_PROBES, EventReport, NodePodProbeReport
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.copies import Copies, Key
from flotilla_nodeagent.probes.definitions import Key as ProbeKey
from flotilla_nodeagent.probes.definitions import Probe, digest, read_probes
from flotilla_nodeagent.probes.handlers import addresses_of_node
from flotilla_nodeagent.probes.prober import Prober, Worker
from flotilla_nodeagent.probes.states import Progress, Result, cut, redefined
from flotilla_nodeagent.reporting import ReportNotAccepted
from flotilla_nodeagent.workqueue import WorkQueue

FILE = "results.json"

COMPONENT = "kruise-daemon-podprobe"

BURST, WRITES_PER_SECOND = 5, 1.0
"""Limit of reports: a change is reported at once, and many in a row with one report a second."""

BACKOFF = Backoff(0.2, 5.0)
"""Delay between attempts at a report that was not accepted."""

EVENT_SECONDS = 10.0
"""Minimum time between events about one probe of which only the message changes."""


class StoredResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of one probe, with its container and handler."""

    uid: str
    name: str
    container_id: str
    handler: str  # its digest
    result: Result


_decode = msgspec.json.Decoder(list[StoredResult]).decode


class Results:
    """All results, in one file. Without a writable folder nothing is kept, which is logged once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = structlog.get_logger(folder=str(folder))
        self._durable = True
        self._written: list[StoredResult] | None = None

    def load(self) -> dict[ProbeKey, StoredResult]:
        """Return the results of an earlier process. An unreadable file counts as missing."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            stored = _decode((self._folder / FILE).read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            self._log.warning("unreadable results of probes", error=str(error))
            return {}
        return {(result.uid, result.name): result for result in stored}

    def keep(self, results: list[StoredResult]) -> None:
        """Write all results, if they differ from the last written ones."""
        if results == self._written or not self._durable:
            return
        new = self._folder / f"{FILE}.new"
        try:
            new.write_bytes(msgspec.json.encode(results))
            new.replace(self._folder / FILE)
        except OSError as error:
            self._log.warning("results of probes cannot be kept; a restart may reset some", error=str(error))
            self._durable = False
        self._written = results


Gist = dict[ProbeKey, tuple[str, str, datetime | None]]
"""The part of a status that only the agent has: state, message and time of each probe.

The receiver adds order and times of transitions.
"""


class NodePodProbes:
    """Handles the NodePodProbe with the node's name."""

    def __init__(self, context: AgentContext, copies: Copies[NodePodProbe], results: Results, node_ips: str) -> None:
        """Load the results that an earlier process kept, and follow the copies.

        `node_ips` are the addresses of the node, if they are not those of this machine.
        """
        self._context = context
        self._copies = copies
        self._results = results
        self._key: Key = ("", context.node)
        self._kept: Mapping[ProbeKey, StoredResult] | None = results.load()  # None once it is consumed
        self._writes = Quota(BURST, WRITES_PER_SECOND)
        self._read: NodePodProbe | None = None  # the copy that the probes are from
        self._reported: Gist | None = None  # accepted last, unless a later copy contradicts
        self._events: dict[ProbeKey, float] = {}  # time of the last one (monotonic)
        self._queue = WorkQueue[Key]("probes", context, self._sync, workers=1, backoff=BACKOFF)
        self._prober = Prober(context, self._changed, addresses_of_node(node_ips))
        self._log = structlog.get_logger(part="probes")
        copies.listen(self._arrived)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(self._prober.run())

    def _arrived(self, key: Key) -> None:
        if key == self._key and self._copies.synced:
            self._queue.add(self._key)

    def _changed(self, probe: Probe, before: Result | None, after: Result) -> None:
        self._queue.add(self._key)
        now = self._context.clock.monotonic()
        recent = now - self._events.get(probe.key, float("-inf")) < EVENT_SECONDS
        if before is not None and before.state == after.state and (before.message == after.message or recent):
            return
        self._events[probe.key] = now
        reason = "KruiseProbeSucceeded" if after.state == SUCCEEDED else "KruiseProbeFailed"
        event = EventReport(kind="Pod", uid=probe.uid, component=COMPONENT, reason=reason, message=after.message)
        self._context.reporter.event(probe.namespace, probe.pod, event)

    async def _sync(self, key: Key) -> float | None:
        node_probe = self._copies.get(key)
        if node_probe is None or node_probe.metadata.deletion_timestamp is not None:
            self._prober.sync({}, {})
            self._read = self._reported = None
            return None
        if node_probe is not self._read:
            self._take(node_probe)
        now = self._context.clock.monotonic()
        if not self._writes.left(key[1], now):
            return self._writes.wait(key[1], now)  # not slept here: by then there may be something newer
        status = status_of(self._prober.workers)
        self._results.keep([*stored_results(self._prober.workers)])
        if gist(status) != (gist(node_probe.status) if self._reported is None else self._reported):
            self._writes.take(key[1], now)
            await self._report(node_probe, status)
        return None

    def _take(self, node_probe: NodePodProbe) -> None:
        """Run the probes of this spec from now on."""
        wanted, left_out = read_probes(node_probe.spec)
        if left_out:
            self._log.warning("there are too many probes; the last ones do not run", left_out=left_out)
        self._prober.sync(wanted, self._known(wanted, node_probe.status))
        self._events = {one: at for one, at in self._events.items() if one in wanted}
        more = f"; {left_out} more are over the limit" if left_out else ""
        self._context.status.ready("probes", True, f"{len(wanted)} run{more}")
        self._read = node_probe
        if gist(node_probe.status) != self._reported:
            self._reported = None

    def _known(self, wanted: Mapping[ProbeKey, Probe], status: NodePodProbeStatus) -> dict[ProbeKey, Progress]:
        """Return the results of an earlier process, as it kept or reported them.

        Only the first call returns any: later on, a status may be about a former probe of this name.
        """
        known: dict[ProbeKey, Progress] = {}
        kept_before, self._kept = self._kept, None
        if kept_before is None:
            return known
        for pod in status.pod_probe_statuses:
            for state in pod.probe_states:
                if state.last_probe_time is not None and state.last_transition_time is not None:
                    result = Result(
                        state=state.state,
                        message=state.message,
                        probed=state.last_probe_time,
                        since=state.last_transition_time,
                    )
                    known[pod.uid, state.name] = Progress(result=result)
        for key, kept in kept_before.items():
            if key in wanted:
                progress = Progress(container_id=kept.container_id, result=kept.result)
                same = kept.handler == digest(wanted[key].handler)
                known[key] = progress if same else redefined(progress, self._context.clock.now())
        return known

    async def _report(self, node_probe: NodePodProbe, status: NodePodProbeStatus) -> None:
        meta = node_probe.metadata
        report = NodePodProbeReport(uid=meta.uid, resource_version=meta.resource_version, status=status)
        try:
            await self._context.reporter.status(NODE_POD_PROBES, meta.name, report)
        except ReportNotAccepted:
            self._reported = None
            raise
        self._reported = gist(status)


def status_of(workers: Mapping[ProbeKey, Worker]) -> NodePodProbeStatus:
    """Return the results of all probes that have one, by pod and in the order of the spec."""
    pods: dict[str, PodProbeStatus] = {}
    most = min(MESSAGE_BYTES, MESSAGES_BYTES // max(len(workers), 1))
    for worker in workers.values():
        probe, result = worker.probe, worker.progress.result
        if result is None:
            continue
        empty = PodProbeStatus(name=probe.pod, namespace=probe.namespace, uid=probe.uid, probe_states=[])
        pods.setdefault(probe.uid, empty).probe_states.append(
            ProbeState(
                name=probe.name,
                state=result.state,
                last_probe_time=result.probed,
                last_transition_time=result.since,
                message=cut(result.message, most),
            )
        )
    return NodePodProbeStatus(pod_probe_statuses=list(pods.values()))


def stored_results(workers: Mapping[ProbeKey, Worker]) -> Iterator[StoredResult]:
    """Yield the results of all probes that have one, with their containers and handlers."""
    for worker in workers.values():
        probe, progress = worker.probe, worker.progress
        if progress.result is not None:
            yield StoredResult(
                uid=probe.uid,
                name=probe.name,
                container_id=progress.container_id,
                handler=digest(probe.handler),
                result=progress.result,
            )


def gist(status: NodePodProbeStatus) -> Gist:
    """Return the part of the status that only the agent has: state, message and time of each probe."""
    return {
        (pod.uid, state.name): (state.state, state.message, state.last_probe_time)
        for pod in status.pod_probe_statuses
        for state in pod.probe_states
    }
