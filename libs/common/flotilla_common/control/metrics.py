"""Controller metrics under the names that existing dashboards use (install.md §10), and a few of our own.

No label names an object, so the number of series does not grow with the cluster.
"""

import collections
from collections import Counter as Tally
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import UnknownMetricFamily
from prometheus_client.registry import Collector

from flotilla_common.clock import Clock
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import Reason, State

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


WAITING_STATES = frozenset({State.STUCK, State.HELD, State.WAITING})
"""The states of reasons for which an object makes no progress."""

MOST_REASONS = 500
"""Most combinations of kind, state and code in one process; there are some 150. Further codes become `Other`."""

Wait = tuple[str, str]
"""State and code of a reason."""


class WaitingObjects:
    """The reasons why objects of one controller wait; `owns` reports whether this replica serves an object now."""

    def __init__(self, kind: str, clock: Clock, owns: Callable[[str, str], bool]) -> None:
        self.kind = kind
        self._clock = clock
        self._owns = owns
        self._since: dict[Key, dict[Wait, float]] = {}  # monotonic

    def planned(self, key: Key, reasons: Iterable[Reason]) -> None:
        """Store the reasons of an object's newest plan."""
        waits = [(reason.state.value, reason.code) for reason in reasons if reason.state in WAITING_STATES]
        before = self._since.pop(key, None)
        if waits:
            now = self._clock.monotonic()
            self._since[key] = {wait: before.get(wait, now) if before else now for wait in waits}

    def forget(self, key: Key) -> None:
        """Drop an object that is gone."""
        self._since.pop(key, None)

    def durations(self) -> Iterator[tuple[Wait, float]]:
        """Yield what each object waits for, and for how many seconds.

        Objects that another replica serves by now are dropped.
        """
        for key in [key for key in self._since if not self._owns(*key)]:
            del self._since[key]
        now = self._clock.monotonic()
        for waits in self._since.values():
            for wait, since in waits.items():
                yield wait, now - since


class Waiting(Collector):
    """The two metrics of a process. Of controllers with the same name the newest counts."""

    def __init__(self, registry: CollectorRegistry | None = REGISTRY) -> None:
        self._followed: dict[str, WaitingObjects] = {}  # by the controller's name
        if registry is not None:
            registry.register(self)

    def follow(self, controller: str, waits: WaitingObjects) -> None:
        """Include the objects of a controller."""
        self._followed[controller] = waits

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the metric families, for the registry."""
        counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
        longest: dict[tuple[str, str, str], float] = {}
        for waits in self._followed.values():
            for wait, seconds in waits.durations():
                series = (waits.kind, *wait)
                if series not in counts and len(counts) >= MOST_REASONS:
                    series = (waits.kind, wait[0], "Other")
                counts[series] += 1
                longest[series] = max(longest.get(series, 0.0), seconds)
        labels = ["kind", "state", "reason"]
        yield _filled(
            GaugeMetricFamily("flotilla_objects_waiting", "Objects by what they wait for.", labels=labels), counts
        )
        text = "Longest time that one of the objects has waited, since this replica serves it."
        yield _filled(GaugeMetricFamily("flotilla_objects_waiting_longest_seconds", text, labels=labels), longest)


def _filled(family: GaugeMetricFamily, values: Mapping[tuple[str, str, str], float]) -> GaugeMetricFamily:
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family


WAITING = Waiting()
"""The metrics of this process."""


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
