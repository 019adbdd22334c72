"""What the webhook counts (install.md §10), under the names that dashboards know."""

from collections import Counter as Tally
from collections.abc import Iterator
from functools import cache

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import UnknownMetricFamily
from prometheus_client.registry import Collector


class BareCounter(Collector):
    """A counter whose series is named exactly as given.

    The client library would append `_total` to it. The price of the historical name is that its type reads `untyped`.
    """

    def __init__(self, name: str, documentation: str, labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        self._name, self._documentation, self._labels = name, documentation, labels
        self._values: Tally[tuple[str, ...]] = Tally()
        registry.register(self)

    def count(self, *labels: str) -> None:
        """One more for these label values."""
        self._values[labels] += 1

    def collect(self) -> Iterator[UnknownMetricFamily]:
        """The family, for the registry."""
        family = UnknownMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family


class Metrics:
    """All metrics of the webhook service."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.requests = Counter(
            "controller_runtime_webhook_requests",
            "Answers by path and HTTP code.",
            ["webhook", "code"],
            registry=registry,
        )
        self.latency = Histogram(
            "controller_runtime_webhook_latency_seconds", "Time to an answer.", ["webhook"], registry=registry
        )
        self.in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight", "Requests being answered.", ["webhook"], registry=registry
        )
        who = "username"
        self.namespaces = BareCounter(
            "namespace_deletion_protection", "Refused deletions of namespaces.", ("name", who), registry
        )
        self.definitions = BareCounter("crd_deletion_protection", "Refused deletions of CRDs.", ("name", who), registry)
        self.workloads = BareCounter(
            "workload_deletion_protection", "Refused deletions of workloads.", ("kind_namespace_name", who), registry
        )


@cache
def process_metrics() -> Metrics:
    """The metrics that this process exposes: a registry takes each name once, however often the service starts."""
    return Metrics()
