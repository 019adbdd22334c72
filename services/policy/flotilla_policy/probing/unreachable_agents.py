"""Finds probes whose results are overdue, because the node's agent is silent."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbe, NodeProbe, ProbeSpec, split
from flotilla_common.api.kinds.podprobemarker.types import PodProbeMarker
from flotilla_common.api.moments import later
from flotilla_common.control.planbuilder import Deadlines

ANSWERS_WITHIN = timedelta(seconds=15)
"""The time within which an agent must report the first result of a probe, besides the probe's own delay and period."""


def overdue_probes(
    found: NodePodProbe, pod: Pod, markers: Iterable[PodProbeMarker], now: datetime, deadlines: Deadlines
) -> Iterator[NodeProbe]:
    """Yield the probes of the pod whose first result is overdue.

    `deadlines` gets the moment when the next result is due. `markers`: PodProbeMarkers of the pod's namespace; probes
    of others are left out.
    """
    uid = pod.metadata.uid
    known = {state.name for state in found.results_of(uid)}
    asked = {marker.metadata.name: marker.metadata.creation_timestamp for marker in markers}
    for probe in (probe for entry in found.spec.pod_probes if entry.uid == uid for probe in entry.probes):
        started, name = _running_since(pod, probe.container_name), split(probe.name)[0]
        if started is None or probe.name in known or name not in asked:
            continue
        since = max(started, asked[name] or started)  # a container may have run for long when it is first probed
        if deadlines.passed(later(since, ANSWERS_WITHIN + _allowed(probe)), now):
            yield probe


def _running_since(pod: Pod, container: str) -> datetime | None:
    statuses = [*pod.status.container_statuses, *pod.status.init_container_statuses]
    found = next((one for one in statuses if one.name == container), None)
    running = found.state.running if found is not None else None
    return running.started_at if running is not None else None


def _allowed(probe: NodeProbe) -> timedelta:
    """Return how long the first round of the probe may take."""
    try:
        spec = read_json(probe.probe, ProbeSpec)
    except ValueError:
        return timedelta()
    return timedelta(seconds=min(max(spec.period_seconds, 1), 3600) + min(max(spec.initial_delay_seconds, 1), 3600))


def agents_unreachable(nodes: Sequence[str]) -> str:
    """Return the message about nodes whose agents have reported nothing."""
    return f"no node agent has reported a result on {', '.join(nodes)}; check that it runs there and reaches the bus"
