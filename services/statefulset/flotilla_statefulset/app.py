"""The program of the StatefulSet service: its controllers."""

from flotilla_common.service import Service, run_alone
from flotilla_common.service_runner import controller_service
from flotilla_statefulset.persistentpodstate.controller import CONTROLLER as PERSISTENT_POD_STATES
from flotilla_statefulset.statefulset.controller import CONTROLLER as STATEFUL_SETS

PARTS = (STATEFUL_SETS, PERSISTENT_POD_STATES)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return controller_service("statefulset", PARTS)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
