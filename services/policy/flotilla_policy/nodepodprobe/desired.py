"""Computes the whole spec of a NodePodProbe from the PodProbeMarkers and pods of its node.

See podprobemarker.md §4.4, §4.5 and §5.2. Existing entries keep their place, so that an object of another controller is
written only where it differs. A node has limits; probes beyond them are left out, the newest first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.nodepodprobe.types import (
    PROBES_PER_NODE,
    PROBES_PER_POD,
    SPEC_BYTES,
    NodePodProbeSpec,
    NodeProbe,
    PodProbe,
)
from flotilla_common.api.kinds.podprobemarker.types import PodProbeMarker
from flotilla_policy.probes import Skipped, probes_of, same

ENTRY_BYTES = 256
"""The approximate size of an entry of a pod or probe, besides the probe itself."""


class Capacity:
    """The remaining capacity of one node for probes."""

    def __init__(self) -> None:
        self._probes = PROBES_PER_NODE
        self._bytes = SPEC_BYTES

    def take(self, probe: NodeProbe, of_pod: int) -> bool:
        """Reserve capacity for a probe of a pod that has `of_pod` probes already; return False if it is used up."""
        size = len(bytes(probe.probe)) + len(probe.name) + ENTRY_BYTES
        if of_pod >= PROBES_PER_POD or self._probes < 1 or self._bytes < size:
            return False
        self._probes -= 1
        self._bytes -= size
        return True


def used_capacity(spec: NodePodProbeSpec) -> Capacity:
    """Return the capacity that a spec leaves."""
    capacity = Capacity()
    for entry in spec.pod_probes:
        for probe in entry.probes:
            capacity.take(probe, 0)
    return capacity


def desired_spec(
    current: NodePodProbeSpec, pods: Iterable[Pod], markers: Mapping[str, Sequence[PodProbeMarker]]
) -> NodePodProbeSpec:
    """Return the spec for these pods, which can all be probed."""
    left = {pod.metadata.uid: pod for pod in pods}
    capacity = Capacity()
    entries: list[PodProbe] = []
    for entry in current.pod_probes:
        pod = left.pop(entry.uid, None)
        if pod is not None and pod.metadata.key == (entry.namespace, entry.name):
            entries += _entry(entry, pod, markers, capacity)
    for pod in sorted(left.values(), key=lambda pod: (pod.metadata.namespace, pod.metadata.seniority)):
        meta = pod.metadata
        fresh = PodProbe(name=meta.name, namespace=meta.namespace, uid=meta.uid)
        entries += _entry(fresh, pod, markers, capacity)
    return NodePodProbeSpec(pod_probes=entries)


def _entry(
    current: PodProbe, pod: Pod, markers: Mapping[str, Sequence[PodProbeMarker]], capacity: Capacity
) -> Iterator[PodProbe]:
    """Yield the entry of the pod; none without probes."""
    desired = {probe.name: probe for probe in probes_for(pod, markers.get(pod.metadata.namespace, ()))}
    probes: list[NodeProbe] = []
    for probe in current.probes:
        new = desired.pop(probe.name, None)
        if new is not None and capacity.take(new, len(probes)):
            probes.append(probe if same(probe, new) else new)
    for probe in desired.values():
        if capacity.take(probe, len(probes)):
            probes.append(probe)
    if probes:  # a recreated sandbox has another IP
        yield msgspec.structs.replace(current, ip=pod.status.pod_ip or current.ip, probes=probes)


def probes_for(pod: Pod, markers: Iterable[PodProbeMarker]) -> Iterator[NodeProbe]:
    """Yield the pod's probes from all PodProbeMarkers of its namespace."""
    for marker in markers:
        if marker.metadata.deletion_timestamp is None and marker.selects(pod.metadata.labels):
            yield from (probe for probe in probes_of(marker, pod) if not isinstance(probe, Skipped))
