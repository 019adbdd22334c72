"""Names and labels that existing dashboards use (install.md §10), and the events that change them."""

from typing import Any, cast

import prometheus_client
import pytest
from prometheus_client import REGISTRY

import flotilla_common.kube.client
import flotilla_common.service
from flotilla_cloneset.app import export_scale_expectation_leakage
from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD
from flotilla_common.control import metrics
from flotilla_common.control.priority import PriorityOrder
from flotilla_common.control.queue import KeyedQueue
from flotilla_common.mirror.mirror import Mirror
from tests.unit.control.fakes import ManualClock, NoChance

SERIES = [
    ("controller_runtime_reconcile_total", "counter", {"controller", "result"}),
    ("controller_runtime_reconcile_errors_total", "counter", {"controller"}),
    ("controller_runtime_reconcile_time_seconds", "histogram", {"controller"}),
    ("controller_runtime_active_workers", "gauge", {"controller"}),
    ("controller_runtime_max_concurrent_reconciles", "gauge", {"controller"}),
    ("workqueue_depth", "gauge", {"name"}),
    ("workqueue_adds_total", "counter", {"name"}),
    ("workqueue_queue_duration_seconds", "histogram", {"name"}),
    ("workqueue_work_duration_seconds", "histogram", {"name"}),
    ("workqueue_retries_total", "counter", {"name"}),
    ("workqueue_unfinished_work_seconds", "gauge", {"name"}),
    ("workqueue_longest_running_processor_seconds", "gauge", {"name"}),
    ("leader_election_master_status", "gauge", {"name"}),
    ("kruise_manager_is_leader", "gauge", set[str]()),
    ("rest_client_requests_total", "counter", {"code", "host", "method"}),
    ("cloneset_scale_expectation_leakage", "unknown", {"namespace", "name"}),
    ("process_resident_memory_bytes", "gauge", set[str]()),
    ("process_cpu_seconds_total", "counter", set[str]()),
    ("flotilla_plan_seconds", "histogram", {"controller"}),
    ("flotilla_writes_total", "counter", {"service", "kind", "action", "outcome"}),
    ("flotilla_events_dropped_total", "counter", set[str]()),
    ("flotilla_bus_connected", "gauge", set[str]()),
    ("flotilla_mirror_objects", "gauge", {"resource"}),
    ("flotilla_mirror_lag_seconds", "gauge", {"resource"}),
    ("flotilla_mirror_undecodable_objects", "gauge", {"resource"}),
]


@pytest.fixture(scope="module", autouse=True)
def moved() -> None:
    """Use everything once, so that every family has a series."""
    prometheus_client.disable_created_metrics()
    controller = metrics.ControllerMetrics("test-controller", ManualClock(), 3)
    with controller.running():
        controller.ended("success")
    controller.planned(0.001)
    metrics.report_leadership(lambda: True)
    metrics.WriteMetrics("test").count("Pod", "patch", "Ok")
    Mirror(api=cast("Any", None), bus=cast("Any", None), clock=ManualClock()).add(POD, Pod)
    flotilla_common.kube.client.REQUESTS.labels("200", "localhost", "GET").inc()
    flotilla_common.service.BUS_CONNECTED.set(1)
    export_scale_expectation_leakage()


@pytest.mark.parametrize(("name", "kind", "labels"), SERIES, ids=[name for name, _, _ in SERIES])
def test_names_types_and_labels(name: str, kind: str, labels: set[str]) -> None:
    sample_name = f"{name}_count" if kind == "histogram" else name
    found = [
        (family.type, set(sample.labels))
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name == sample_name
    ]
    assert found
    assert all(entry == (kind, labels) for entry in found)


def value(name: str, /, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_every_result_is_there_from_the_start() -> None:
    metrics.ControllerMetrics("fresh-controller", ManualClock(), 1)
    for result in ("success", "error", "requeue", "requeue_after"):
        labels = {"controller": "fresh-controller", "result": result}
        assert REGISTRY.get_sample_value("controller_runtime_reconcile_total", labels) == 0


async def test_a_queue_says_how_long_its_keys_wait_and_work() -> None:
    clock = ManualClock()
    queue = KeyedQueue[str](clock, NoChance(), PriorityOrder(), meter=metrics.QueueMetrics("q", clock))
    queue.add("a")
    queue.add("a")  # is there already
    queue.add("b")
    assert (value("workqueue_depth", name="q"), value("workqueue_adds_total", name="q")) == (2, 2)
    clock.advance(2)
    await queue.get()
    clock.advance(3)
    await queue.get()
    clock.advance(1)
    assert value("workqueue_queue_duration_seconds_sum", name="q") == 2 + 5
    assert value("workqueue_unfinished_work_seconds", name="q") == 4 + 1
    assert value("workqueue_longest_running_processor_seconds", name="q") == 4
    queue.done("a")
    queue.retry("a")
    queue.add("b")  # comes back when its worker is done
    queue.done("b")
    assert value("workqueue_work_duration_seconds_sum", name="q") == 4 + 1
    assert value("workqueue_retries_total", name="q") == 1
    assert (value("workqueue_adds_total", name="q"), value("workqueue_depth", name="q")) == (3, 1)
    assert value("workqueue_longest_running_processor_seconds", name="q") == 0
