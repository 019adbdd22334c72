"""Metrics of waiting objects: their number and longest wait by reason, from the reasons of plans.

No label names an object. There are as many series as kinds and codes of reasons, however large the cluster is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from flotilla_common.clock import Clock
from flotilla_common.control.plan import Reason, State

STATES = frozenset({State.STUCK, State.HELD, State.WAITING})
"""The states of reasons for which an object makes no progress."""

MOST_REASONS = 500
"""Most combinations of kind, state and code in one process; there are some 150. Further codes become `Other`."""

Key = tuple[str, str]
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
        waits = [(reason.state.value, reason.code) for reason in reasons if reason.state in STATES]
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
        counts: Counter[tuple[str, str, str]] = Counter()
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
