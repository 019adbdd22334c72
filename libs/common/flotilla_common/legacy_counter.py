"""A Prometheus counter without the suffix `_total`, for names that dashboards rely on."""

from collections import Counter as Tally
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import UnknownMetricFamily
from prometheus_client.registry import Collector


class LegacyCounter(Collector):
    """A counter whose series is named exactly as given.

    The client library would append `_total`. In return for the historical name, its type reads `untyped`.
    """

    def __init__(self, name: str, documentation: str, labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        self._name, self._documentation, self._labels = name, documentation, labels
        self._values: Tally[tuple[str, ...]] = Tally()
        registry.register(self)

    def count(self, *labels: str, by: int = 1) -> None:
        """Count an event with these label values; `by=0` only creates the series."""
        self._values[labels] += by

    def collect(self) -> Iterator[UnknownMetricFamily]:
        """Yield the metric family to the registry."""
        family = UnknownMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family
