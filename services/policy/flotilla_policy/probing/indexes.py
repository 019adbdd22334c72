"""The indexes and the off switch that the controllers of PodProbeMarkers and NodePodProbes share."""

from collections.abc import Iterable

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe, split
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.control.spec import served
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings

MARKER = "marker"
"""Index: NodePodProbes by namespace and name of the PodProbeMarkers of their probes."""

ON_NODE = "on node"
"""Index: pods by the node that they run on."""


def by_marker(found: NodePodProbe) -> Iterable[tuple[str, str]]:
    """Return namespace and name of each PodProbeMarker in the spec."""
    return {(pod.namespace, split(probe.name)[0]) for pod in found.spec.pod_probes for probe in pod.probes}


def node_of(pod: Pod) -> Iterable[str]:
    """Return the node of the pod, if it has one."""
    return [pod.spec.node_name] if pod.spec.node_name else []


def probes_off(settings: Settings, gates: Gates) -> str:
    """Return why nothing is probed; empty if either kind is served, since neither works without the other."""
    whys = [served(kind)(settings, gates) for kind in (POD_PROBE_MARKER, NODE_POD_PROBE)]
    return "" if "" in whys else whys[0]
