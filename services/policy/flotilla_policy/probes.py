"""The probes of a pod: resolved from a PodProbeMarker (podprobemarker.md §4.4), and those without a result in time."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.core import Container, Pod
from flotilla_common.api.documents import Json, JsonValue, mapping, text
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.kinds.nodepodprobe.types import PROBE_BYTES, NodePodProbe, NodeProbe, ProbeSpec, joined, split
from flotilla_common.api.kinds.podprobemarker.types import ContainerProbe, PodProbeMarker
from flotilla_common.api.meta import later
from flotilla_common.api.numbers import integer
from flotilla_common.control.planbuilder import Deadlines

_WITH_PORT = ("httpGet", "tcpSocket")

ANSWERS_WITHIN = timedelta(seconds=15)
"""The time within which an agent must report the first result of a probe, besides the probe's own delay and period."""


class Skipped(msgspec.Struct, frozen=True):
    """A probe that a pod does not get, and why."""

    pod: str
    probe: str
    why: str


class Unresolved(Exception):
    """The reason why a pod cannot have a probe."""


def probes_of(marker: PodProbeMarker, pod: Pod) -> Iterator[NodeProbe | Skipped]:
    """Yield the probes that the pod gets from the PodProbeMarker, and the ones that it cannot have."""
    seen: set[str] = set()
    for probe in marker.spec.probes:
        if probe.name in seen:
            yield Skipped(pod.metadata.name, probe.name, "another probe has its name")
            continue
        seen.add(probe.name)
        try:
            yield _resolved(marker, probe, pod)
        except Unresolved as why:
            yield Skipped(pod.metadata.name, probe.name, str(why))


def _resolved(marker: PodProbeMarker, probe: ContainerProbe, pod: Pod) -> NodeProbe:
    """Return the probe with port numbers, as the pod's node runs it. Raises Unresolved."""
    raw = bytes(probe.probe)
    if len(raw) > PROBE_BYTES:
        raise Unresolved(f"it is longer than {PROBE_BYTES} bytes")
    if not raw.lstrip().startswith(b"{"):  # the apiserver would reject all probes of the node because of it
        raise Unresolved("it cannot be read: not a JSON object")
    name = joined(marker.metadata.name, probe.name)
    if not any(handler.encode() in raw for handler in _WITH_PORT):
        return NodeProbe(name=name, container_name=probe.container_name, probe=probe.probe)
    try:
        document = read_json(probe.probe, Json)
    except ValueError as error:
        raise Unresolved(f"it cannot be read: {error}") from error
    for handler in _WITH_PORT:
        if action := mapping(document.get(handler)):
            action["port"] = _port(_container(pod, probe.container_name), action.get("port"))
    return NodeProbe(name=name, container_name=probe.container_name, probe=msgspec.Raw(msgspec.json.encode(document)))


def _container(pod: Pod, name: str) -> Container:
    """Return the container of that name. Raises Unresolved."""
    container = next((each for each in pod.spec.containers if each.name == name), None)
    if container is None:
        raise Unresolved(f"the pod has no container {name}")
    return container


def _port(container: Container, port: JsonValue) -> int:
    """Return the number of the port. Raises Unresolved."""
    if isinstance(port, int):
        return port
    name = text(port)
    number = _numbers(container).get(name) or integer(name)
    if number is None:
        raise Unresolved(f"container {container.name} has no port {name}")
    return number


def _numbers(container: Container) -> dict[str, int]:
    return {port.name: port.container_port for port in container.ports if port.name}


def same(one: NodeProbe, other: NodeProbe) -> bool:
    """Report whether both probes are the same, regardless of formatting."""
    if (one.name, one.container_name) != (other.name, other.container_name):
        return False
    if bytes(one.probe) == bytes(other.probe):
        return True
    try:
        return read_json(one.probe, Json) == read_json(other.probe, Json)
    except ValueError:
        return False


def overdue_probes(
    node_probe: NodePodProbe, pod: Pod, markers: Iterable[PodProbeMarker], now: datetime, deadlines: Deadlines
) -> Iterator[NodeProbe]:
    """Yield the probes of the pod whose first result is overdue.

    `deadlines` gets the moment when the next result is due. `markers`: PodProbeMarkers of the pod's namespace; probes
    of others are left out.
    """
    uid = pod.metadata.uid
    known = {state.name for state in node_probe.results_of(uid)}
    asked = {marker.metadata.name: marker.metadata.creation_timestamp for marker in markers}
    for probe in (probe for entry in node_probe.spec.pod_probes if entry.uid == uid for probe in entry.probes):
        started, name = _running_since(pod, probe.container_name), split(probe.name)[0]
        if started is None or probe.name in known or name not in asked:
            continue
        since = max(started, asked[name] or started)  # a container may have run for long when it is first probed
        if deadlines.passed(later(since, ANSWERS_WITHIN + _allowed(probe)), now):
            yield probe


def _running_since(pod: Pod, container: str) -> datetime | None:
    statuses = [*pod.status.container_statuses, *pod.status.init_container_statuses]
    status = next((each for each in statuses if each.name == container), None)
    running = status.state.running if status is not None else None
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
