"""The CloneSet service on one page: its controllers."""

from functools import cache

from prometheus_client import REGISTRY

from flotilla_cloneset.cloneset.controller import CONTROLLER
from flotilla_common.assembly import controller_service
from flotilla_common.bare_counter import BareCounter
from flotilla_common.service import Service, run_alone

PARTS = (CONTROLLER,)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    export_scale_expectation_leakage()
    return controller_service("cloneset", PARTS)


def main() -> int:
    """Run the service as a process of its own; returns the exit code."""
    return run_alone(service())


@cache
def export_scale_expectation_leakage() -> None:
    """Put `cloneset_scale_expectation_leakage` (install.md §10) on this process's page, once however often the service
    starts. No expectations are kept that could leak, since the mirror shows our own writes at once: it is always 0."""
    text = "Expectations of the reference that were never met; always 0."
    BareCounter("cloneset_scale_expectation_leakage", text, ("namespace", "name"), REGISTRY).count("", "", by=0)
