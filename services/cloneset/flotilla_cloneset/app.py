"""The program of the CloneSet service: its controllers."""

from functools import cache

from prometheus_client import REGISTRY

from flotilla_cloneset.cloneset.controller import CONTROLLER
from flotilla_common.control.metrics import LegacyCounter
from flotilla_common.service import Service, run_alone
from flotilla_common.service_runner import controller_service

PARTS = (CONTROLLER,)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    export_scale_expectation_leakage()
    return controller_service("cloneset", PARTS)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())


@cache
def export_scale_expectation_leakage() -> None:
    """Export `cloneset_scale_expectation_leakage` (install.md §10), once per process. It is always 0."""
    # The mirror shows our own writes at once, so there are no expectations that could leak.
    text = "Expectations of the reference that were never met; always 0."
    LegacyCounter("cloneset_scale_expectation_leakage", text, ("namespace", "name"), REGISTRY).count("", "", by=0)
