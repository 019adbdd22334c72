"""The webhook's metrics (install.md §10), under the names that dashboards use."""

from functools import cache

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from flotilla_common.control.metrics import LegacyCounter


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
        self.certificate_end = Gauge(
            "flotilla_webhook_certificate_end_seconds", "When the certificate ends (Unix time).", registry=registry
        )
        who = "username"
        self.namespaces = LegacyCounter(
            "namespace_deletion_protection", "Refused deletions of namespaces.", ("name", who), registry
        )
        self.definitions = LegacyCounter(
            "crd_deletion_protection", "Refused deletions of CRDs.", ("name", who), registry
        )
        self.workloads = LegacyCounter(
            "workload_deletion_protection", "Refused deletions of workloads.", ("kind_namespace_name", who), registry
        )
        self.budgets = LegacyCounter(
            "pod_unavailable_budget",
            "Deletions, evictions and updates of pods that a budget refused.",
            ("kind_namespace_name", who),
            registry,
        )
        self.budget_requests = Counter(
            "flotilla_webhook_budget_requests_total",
            "Requests that took a unit of budget, or were refused.",
            ["operation", "outcome"],
            registry=registry,
        )


@cache
def process_metrics() -> Metrics:
    """Return the metrics of this process: a registry accepts each name once, even if the service starts again."""
    return Metrics()
