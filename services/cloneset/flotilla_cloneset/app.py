"""The CloneSet service on one page: its controllers."""

from flotilla_cloneset import metrics
from flotilla_cloneset.cloneset.controller import CONTROLLER
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.assembly import controller_service
from flotilla_common.service import Service
from flotilla_common.workload.podreadiness.controller import pod_readiness

PARTS = (pod_readiness(CLONE_SET, STATEFUL_SET), CONTROLLER)
"""The readiness gate of other pods is served here until there is a sidecar service (docs/adr/0005)."""


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    metrics.export_scale_expectation_leakage()
    return controller_service("cloneset", PARTS)
