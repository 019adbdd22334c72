"""Controller metrics under the names that existing dashboards use (install.md §10), and a few of our own.

No label names an object, so the number of series does not grow with the cluster.
"""

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager

from prometheus_client import Counter, Gauge, Histogram

from flotilla_common.clock import Clock

_QUEUE_BUCKETS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""Seconds. Queue times span orders of magnitude, as in the reference's buckets."""

_PLAN_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Seconds, from a set with few pods to far beyond the budget of a plan for 10,000 pods (40 ms)."""

RESULTS = ("success", "error", "requeue", "requeue_after")

RECONCILES = Counter("controller_runtime_reconcile_total", "Passes by result.", ["controller", "result"])
ERRORS = Counter("controller_runtime_reconcile_errors_total", "Passes that ended with an error.", ["controller"])
SECONDS = Histogram("controller_runtime_reconcile_time_seconds", "Duration of a pass.", ["controller"])
ACTIVE = Gauge("controller_runtime_active_workers", "Busy workers.", ["controller"])
WORKERS = Gauge("controller_runtime_max_concurrent_reconciles", "Workers.", ["controller"])
LEADER = Gauge("kruise_manager_is_leader", "1 on a replica that serves a shard.")
MASTER = Gauge("leader_election_master_status", "1 on a replica that serves a shard.", ["name"])

DEPTH = Gauge("workqueue_depth", "Keys that wait for a worker.", ["name"])
ADDS = Counter("workqueue_adds_total", "Keys that became ready.", ["name"])
RETRIES = Counter("workqueue_retries_total", "Keys that went into backoff.", ["name"])
WAITED = Histogram("workqueue_queue_duration_seconds", "From ready to a worker.", ["name"], buckets=_QUEUE_BUCKETS)
WORKED = Histogram("workqueue_work_duration_seconds", "Time with a worker.", ["name"], buckets=_QUEUE_BUCKETS)
UNFINISHED = Gauge("workqueue_unfinished_work_seconds", "Total time of the passes in progress.", ["name"])
LONGEST = Gauge("workqueue_longest_running_processor_seconds", "Time of the longest pass in progress.", ["name"])

PLAN = Histogram("flotilla_plan_seconds", "Time that planning one object took.", ["controller"], buckets=_PLAN_BUCKETS)
WRITES = Counter("flotilla_writes_total", "Writes by outcome.", ["service", "kind", "action", "outcome"])
EVENTS_DROPPED = Counter("flotilla_events_dropped_total", "Kubernetes Events that were not written.")


def report_leadership(leads: Callable[[], bool]) -> None:
    """Make the two leadership series follow `leads`."""
    LEADER.set_function(lambda: float(leads()))
    MASTER.labels("kruise-manager").set_function(lambda: float(leads()))


class QueueMetrics:
    """The metrics of one work queue."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._clock = clock
        self._ready: dict[Hashable, float] = {}  # time at which each key became ready
        self._busy: dict[Hashable, float] = {}
        self._adds, self._retries = ADDS.labels(name), RETRIES.labels(name)
        self._waited, self._worked = WAITED.labels(name), WORKED.labels(name)
        DEPTH.labels(name).set_function(lambda: len(self._ready))
        UNFINISHED.labels(name).set_function(lambda: sum(self._running()))
        LONGEST.labels(name).set_function(lambda: max(self._running(), default=0.0))

    def queued(self, key: Hashable) -> None:
        """Count a key that became ready."""
        self._ready[key] = self._clock.monotonic()
        self._adds.inc()

    def taken(self, key: Hashable) -> None:
        """Measure how long the key waited for a worker."""
        now = self._busy[key] = self._clock.monotonic()
        self._waited.observe(now - self._ready.pop(key, now))

    def done(self, key: Hashable) -> None:
        """Measure how long the worker took for the key."""
        now = self._clock.monotonic()
        self._worked.observe(now - self._busy.pop(key, now))

    def retried(self) -> None:
        """Count a key that goes into backoff."""
        self._retries.inc()

    def _running(self) -> list[float]:
        now = self._clock.monotonic()
        return [now - since for since in self._busy.values()]


class ControllerMetrics:
    """The metrics of one controller and its queue."""

    def __init__(self, name: str, clock: Clock, workers: int) -> None:
        self.queue = QueueMetrics(name, clock)
        self._active, self._seconds, self._errors = ACTIVE.labels(name), SECONDS.labels(name), ERRORS.labels(name)
        self._results = {result: RECONCILES.labels(name, result) for result in RESULTS}  # to start at zero
        self.planned = PLAN.labels(name).observe
        WORKERS.labels(name).set(workers)

    @contextmanager
    def running(self) -> Generator[None]:
        """Measure one pass."""
        with self._active.track_inprogress(), self._seconds.time():
            yield

    def ended(self, result: str) -> None:
        """Count a pass by its result, one of RESULTS."""
        self._results[result].inc()
        if result == "error":
            self._errors.inc()


class WriteMetrics:
    """Counters of one service's writes, cached because looking up a series costs more than counting."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._series: dict[tuple[str, str, str], Counter] = {}

    def count(self, kind: str, action: str, outcome: str) -> None:
        """Count one write by its outcome."""
        series = self._series.get((kind, action, outcome))
        if series is None:
            series = self._series[kind, action, outcome] = WRITES.labels(self._service, kind, action, outcome)
        series.inc()
