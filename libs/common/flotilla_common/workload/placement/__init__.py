"""Placement of pods on nodes, for kinds with a pod per node (daemonset.md §4.2, broadcastjob.md §4.3)."""

from flotilla_common.workload.placement.fit import (
    FITS,
    Demands,
    Fit,
    Placement,
    daemon_demands,
    node_of,
    pinned,
    with_daemon_tolerations,
)
from flotilla_common.workload.placement.strict import StrictPlacement

__all__ = [
    "FITS",
    "Demands",
    "Fit",
    "Placement",
    "StrictPlacement",
    "daemon_demands",
    "node_of",
    "pinned",
    "with_daemon_tolerations",
]
