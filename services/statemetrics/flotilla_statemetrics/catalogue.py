"""Lists all kinds that have metrics."""

from flotilla_statemetrics.families import AnyKind
from flotilla_statemetrics.kinds.broadcastjobs import BROADCAST_JOBS
from flotilla_statemetrics.kinds.clonesets import CLONE_SETS
from flotilla_statemetrics.kinds.daemonsets import DAEMON_SETS
from flotilla_statemetrics.kinds.sidecarsets import SIDECAR_SETS
from flotilla_statemetrics.kinds.statefulsets import ADVANCED_STATEFUL_SETS, STATEFUL_SETS
from flotilla_statemetrics.kinds.workloadspreads import WORKLOAD_SPREADS

KINDS: tuple[AnyKind, ...] = (
    CLONE_SETS,
    STATEFUL_SETS,
    ADVANCED_STATEFUL_SETS,
    DAEMON_SETS,
    SIDECAR_SETS,
    BROADCAST_JOBS,
    WORKLOAD_SPREADS,
)

RESOURCES = tuple(dict.fromkeys(kind.resource for kind in KINDS))
"""The resources that the service reads."""
