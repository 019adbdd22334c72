"""Selects the pods to probe (podprobemarker.md §4.3), and has the indexes and the off switch of both controllers."""

from collections.abc import Iterable

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe, split
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER, VIRTUAL_NODE
from flotilla_common.control.spec import served
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings

MARKER = "marker"
"""Index: NodePodProbes by namespace and name of the PodProbeMarkers of their probes."""

ON_NODE = "on node"
"""Index: pods by the node that they run on."""


def can_be_probed(pod: Pod) -> bool:
    """Report whether the pod is active, has a node, and has finished its init containers."""
    initialized = pod.conditions.get("Initialized")
    return pod.active and bool(pod.spec.node_name) and initialized is not None and initialized.status == "True"


def is_virtual(node: Node) -> bool:
    """Report whether the node runs the probes of its pods by itself."""
    key, value = VIRTUAL_NODE
    return node.metadata.labels.get(key) == value


def by_marker(node_probe: NodePodProbe) -> Iterable[tuple[str, str]]:
    """Return namespace and name of each PodProbeMarker in the spec."""
    return {(pod.namespace, split(probe.name)[0]) for pod in node_probe.spec.pod_probes for probe in pod.probes}


def node_of(pod: Pod) -> Iterable[str]:
    """Return the node of the pod, if it has one."""
    return [pod.spec.node_name] if pod.spec.node_name else []


def probes_off(settings: Settings, gates: Gates) -> str:
    """Return why nothing is probed; empty if either kind is served, since neither works without the other."""
    whys = [served(kind)(settings, gates) for kind in (POD_PROBE_MARKER, NODE_POD_PROBE)]
    return "" if "" in whys else whys[0]
