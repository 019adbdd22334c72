"""Controller metrics under the names that existing dashboards use (install.md §10)."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from prometheus_client import Counter, Gauge, Histogram

RECONCILES = Counter("controller_runtime_reconcile", "Passes by result", ["controller", "result"])
ERRORS = Counter("controller_runtime_reconcile_errors", "Passes that ended with an error", ["controller"])
SECONDS = Histogram("controller_runtime_reconcile_time_seconds", "Duration of a pass", ["controller"])
ACTIVE = Gauge("controller_runtime_active_workers", "Workers that are busy", ["controller"])
WORKERS = Gauge("controller_runtime_max_concurrent_reconciles", "Workers", ["controller"])
LEADER = Gauge("kruise_manager_is_leader", "1 on a replica that serves a shard")
MASTER = Gauge("leader_election_master_status", "1 on a replica that serves a shard", ["name"])
DEPTH = Gauge("workqueue_depth", "Keys that wait for a worker", ["name"])


def report_leadership(leads: Callable[[], bool]) -> None:
    """Let the two leadership series follow `leads`."""
    LEADER.set_function(lambda: float(leads()))
    MASTER.labels("kruise-manager").set_function(lambda: float(leads()))


class Sized(Protocol):
    """A queue as far as metrics care."""

    def __len__(self) -> int: ...


class Result:
    """The result of one pass, set by whoever knows it."""

    def __init__(self) -> None:
        self.value = "error"

    def set(self, value: str) -> None:
        """success, error, requeue or requeue_after."""
        self.value = value


class ControllerMetrics:
    """The metrics of one controller."""

    def __init__(self, name: str, queue: Sized, workers: int) -> None:
        self._name = name
        WORKERS.labels(name).set(workers)
        DEPTH.labels(name).set_function(lambda: len(queue))

    @contextmanager
    def running(self) -> Generator[Result]:
        """Measure one pass."""
        result = Result()
        with ACTIVE.labels(self._name).track_inprogress(), SECONDS.labels(self._name).time():
            yield result
        RECONCILES.labels(self._name, result.value).inc()
        if result.value == "error":
            ERRORS.labels(self._name).inc()
