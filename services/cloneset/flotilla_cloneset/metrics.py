"""A series that dashboards of the reference ask for and that cannot rise here."""

from functools import cache

from prometheus_client import REGISTRY

from flotilla_common.bare_counter import BareCounter


@cache
def export_scale_expectation_leakage() -> None:
    """Put `cloneset_scale_expectation_leakage` (install.md §10) on this process's page, once however often the service
    starts. No expectations are kept that could leak, since the mirror shows our own writes at once: it is always 0."""
    text = "Expectations of the reference that were never met; always 0."
    BareCounter("cloneset_scale_expectation_leakage", text, ("namespace", "name"), REGISTRY).count("", "", by=0)
