"""The program of the DaemonSet service: its controllers."""

from flotilla_common.service import Service, run_alone
from flotilla_common.service_runner import controller_service
from flotilla_daemonset.daemonset.controller import CONTROLLER as DAEMON_SETS

PARTS = (DAEMON_SETS,)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return controller_service("daemonset", PARTS)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
