"""Resolves the probes of a PodProbeMarker for one pod: named ports become numbers (podprobemarker.md §4.4)."""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.core import Container, Pod
from flotilla_common.api.documents import Json, JsonValue, mapping, text
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.kinds.nodepodprobe.types import PROBE_BYTES, NodeProbe, joined
from flotilla_common.api.kinds.podprobemarker.types import ContainerProbe, PodProbeMarker
from flotilla_common.api.numbers import integer

_WITH_PORT = ("httpGet", "tcpSocket")


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
    found = next((one for one in pod.spec.containers if one.name == name), None)
    if found is None:
        raise Unresolved(f"the pod has no container {name}")
    return found


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
