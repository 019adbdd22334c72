"""The DaemonSet service on one page: its controllers."""

from flotilla_common.assembly import controller_service
from flotilla_common.service import Service, run_alone
from flotilla_daemonset.daemonset.controller import CONTROLLER as DAEMON_SETS

PARTS = (DAEMON_SETS,)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return controller_service("daemonset", PARTS)


def main() -> int:
    """Run the service as a process of its own; returns the exit code."""
    return run_alone(service())
