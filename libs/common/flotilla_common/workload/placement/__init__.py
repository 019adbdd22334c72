"""On which nodes a pod may run, and on which one it is to run (daemonset.md §4.2): for kinds with a pod per node."""

from flotilla_common.workload.placement.fit import FITS, Fit, Placement
from flotilla_common.workload.placement.pinning import node_of, pinned
from flotilla_common.workload.placement.tolerations import with_daemon_tolerations

__all__ = ["FITS", "Fit", "Placement", "node_of", "pinned", "with_daemon_tolerations"]
