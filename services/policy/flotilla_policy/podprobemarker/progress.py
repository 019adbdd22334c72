"""Tracks how far the probes of a PodProbeMarker have reached the NodePodProbes."""

from collections.abc import Iterable

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbe, NodeProbe, PodProbe, split
from flotilla_common.api.kinds.podprobemarker.types import PodProbeMarker
from flotilla_policy.nodepodprobe.desired import Capacity, used_capacity
from flotilla_policy.podprobemarker.snapshot import PodProbeMarkerSnapshot
from flotilla_policy.probes import Skipped, probes_of, same


class Progress(msgspec.Struct):
    """The progress of the probes, by names of nodes and pods."""

    pending: dict[str, None]  # nodes whose NodePodProbe differs from the desired one
    skipped: list[Skipped]  # probes that a pod cannot have
    left_out: dict[str, None]  # pods for whose probes the node has no capacity
    capacities: dict[str, Capacity]  # the remaining capacity of nodes


def progress_of(snapshot: PodProbeMarkerSnapshot) -> Progress:
    """Compare the NodePodProbes with the PodProbeMarker. A deleted marker needs no probes."""
    marker, progress = snapshot.marker, Progress({}, [], {}, {})
    wanted: dict[str, set[str]] = {}
    for pod in snapshot.normal if marker.metadata.deletion_timestamp is None else ():
        probes = [*probes_of(marker, pod)]
        progress.skipped += [probe for probe in probes if isinstance(probe, Skipped)]
        names = _compare(snapshot, pod, [probe for probe in probes if isinstance(probe, NodeProbe)], progress)
        wanted[pod.metadata.uid] = names
    for name, node_probe in snapshot.node_probes.items():
        if any(stale not in wanted.get(entry.uid, ()) for entry, stale in _own(node_probe, marker)):
            progress.pending[name] = None
    return progress


def _compare(snapshot: PodProbeMarkerSnapshot, pod: Pod, probes: Iterable[NodeProbe], progress: Progress) -> set[str]:
    """Record missing and different probes of the pod, and return the names of its probes."""
    node = pod.spec.node_name
    node_probe = snapshot.node_probes.get(node)
    entry = entry_of(node_probe, pod)
    current = {probe.name: probe for probe in entry.probes} if entry is not None else {}
    names: set[str] = set()
    for probe in probes:
        names.add(probe.name)
        there = current.get(probe.name)
        if there is not None and same(there, probe):
            continue
        if there is None and node_probe is not None and not _has_capacity(node_probe, probe, len(current), progress):
            progress.left_out[pod.metadata.name] = None
        else:
            progress.pending[node] = None
    return names


def _has_capacity(node_probe: NodePodProbe, probe: NodeProbe, of_pod: int, progress: Progress) -> bool:
    name = node_probe.metadata.name
    if name not in progress.capacities:
        progress.capacities[name] = used_capacity(node_probe.spec)
    return progress.capacities[name].take(probe, of_pod)


def entry_of(node_probe: NodePodProbe | None, pod: Pod) -> PodProbe | None:
    """Return the entry of the pod; None without one."""
    entries = node_probe.spec.pod_probes if node_probe is not None else ()
    return next((entry for entry in entries if entry.uid == pod.metadata.uid), None)


def _own(node_probe: NodePodProbe, marker: PodProbeMarker) -> Iterable[tuple[PodProbe, str]]:
    """Yield the probes of the PodProbeMarker in the object, with their entries."""
    meta = marker.metadata
    for entry in node_probe.spec.pod_probes:
        if entry.namespace == meta.namespace:
            yield from ((entry, probe.name) for probe in entry.probes if split(probe.name)[0] == meta.name)
