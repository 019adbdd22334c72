"""Decides which pods are probed, and by whom (podprobemarker.md §4.3)."""

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.podprobemarker.types import VIRTUAL_NODE


def can_be_probed(pod: Pod) -> bool:
    """Report whether the pod is active, has a node, and has finished its init containers."""
    initialized = pod.conditions.get("Initialized")
    return pod.active and bool(pod.spec.node_name) and initialized is not None and initialized.status == "True"


def is_virtual(node: Node) -> bool:
    """Report whether the node runs the probes of its pods by itself."""
    key, value = VIRTUAL_NODE
    return node.metadata.labels.get(key) == value
