"""The StatefulSet service on one page: its controllers."""

from flotilla_common.assembly import controller_service
from flotilla_common.service import Service
from flotilla_statefulset.statefulset.controller import CONTROLLER

PARTS = (CONTROLLER,)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return controller_service("statefulset", PARTS)
