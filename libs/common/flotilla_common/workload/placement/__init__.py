"""On which nodes a pod may run, and on which one it is to run (daemonset.md §4.2, broadcastjob.md §4.3): for kinds with
a pod per node."""

from flotilla_common.workload.placement.fit import FITS, Demands, Fit, Placement, daemon_demands
from flotilla_common.workload.placement.pinning import node_of, pinned
from flotilla_common.workload.placement.room import Room, lacking, requests_of
from flotilla_common.workload.placement.strict import StrictPlacement
from flotilla_common.workload.placement.tolerations import with_daemon_tolerations

__all__ = [
    "FITS",
    "Demands",
    "Fit",
    "Placement",
    "Room",
    "StrictPlacement",
    "daemon_demands",
    "lacking",
    "node_of",
    "pinned",
    "requests_of",
    "with_daemon_tolerations",
]
