"""A series that dashboards of the reference ask for and that cannot rise here."""

from collections.abc import Iterator
from functools import cache

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import UnknownMetricFamily
from prometheus_client.registry import Collector


class ScaleExpectationLeakage(Collector):
    """`cloneset_scale_expectation_leakage` (install.md §10): no expectations are kept that could leak, since the mirror
    shows our own writes at once. Its type reads `untyped`, because the client library appends `_total` to counters."""

    def collect(self) -> Iterator[UnknownMetricFamily]:
        """One series of 0, so that sums and alerts have a value."""
        text = "Expectations of the reference that were never met; always 0."
        family = UnknownMetricFamily("cloneset_scale_expectation_leakage", text, labels=("namespace", "name"))
        family.add_metric(("", ""), 0.0)
        yield family


@cache
def export_scale_expectation_leakage() -> None:
    """Put it on this process's page: a registry takes each name once, however often the service starts."""
    REGISTRY.register(ScaleExpectationLeakage())
