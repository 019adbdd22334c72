"""The CloneSet service on one page: its controllers."""

from flotilla_cloneset import metrics
from flotilla_cloneset.cloneset.controller import CONTROLLER
from flotilla_common.assembly import controller_service
from flotilla_common.service import Service

PARTS = (CONTROLLER,)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    metrics.export_scale_expectation_leakage()
    return controller_service("cloneset", PARTS)
