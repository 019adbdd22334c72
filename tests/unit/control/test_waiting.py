"""Waits of objects as metrics: counted by kind and reason, with their duration."""

from prometheus_client import CollectorRegistry

from flotilla_common.control.metrics import MOST_REASONS, WAITING, Waiting, WaitingObjects
from flotilla_common.control.plan import Plan, Reason, State
from tests.unit.control.fakes import ManualClock
from tests.unit.control.test_controller import Loop

BUDGET = Reason(State.WAITING, "WaitingForBudget", "waiting")
PAUSED = Reason(State.HELD, "PausedByUser", "paused")
STUCK = Reason(State.STUCK, "InvalidNumber", "x")
BESIDE = (
    Reason(State.DONE, "Complete", "all"),
    Reason(State.PROGRESSING, "Updating", "2"),
    Reason(State.NOTE, "N", "n"),
)


class Scene:
    """Two controllers, and their metrics in the registry."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.foreign: set[tuple[str, str]] = set()
        self.registry = CollectorRegistry()
        waiting = Waiting(self.registry)
        self.sets, self.jobs = (
            WaitingObjects(kind, self.clock, lambda namespace, name: (namespace, name) not in self.foreign)
            for kind in ("CloneSet", "BroadcastJob")
        )
        for waits in (self.sets, self.jobs):
            waiting.follow(waits.kind, waits)

    def shown(self) -> dict[tuple[str, str, str], tuple[float, float]]:
        """Return count and longest time by kind, state and reason."""
        counts, longest = (
            {(one.labels["kind"], one.labels["state"], one.labels["reason"]): one.value for one in family.samples}
            for family in self.registry.collect()
        )
        return {series: (counts[series], longest[series]) for series in counts}


def test_objects_are_counted_by_kind_and_reason() -> None:
    scene = Scene()
    scene.sets.planned(("a", "x"), [BUDGET, PAUSED])
    scene.sets.planned(("a", "y"), [BUDGET, *BESIDE])
    scene.jobs.planned(("a", "x"), [STUCK])
    scene.jobs.planned(("a", "y"), BESIDE)
    assert scene.shown() == {
        ("CloneSet", "waiting", "WaitingForBudget"): (2, 0),
        ("CloneSet", "held", "PausedByUser"): (1, 0),
        ("BroadcastJob", "stuck", "InvalidNumber"): (1, 0),
    }


def test_the_time_counts_from_when_a_reason_came_up() -> None:
    scene = Scene()
    scene.sets.planned(("a", "x"), [BUDGET])
    scene.clock.advance(60)
    scene.sets.planned(("a", "x"), [BUDGET, PAUSED])
    scene.sets.planned(("a", "y"), [BUDGET])
    scene.clock.advance(5)
    assert scene.shown() == {
        ("CloneSet", "waiting", "WaitingForBudget"): (2, 65),
        ("CloneSet", "held", "PausedByUser"): (1, 5),
    }
    scene.sets.planned(("a", "x"), [])
    scene.sets.planned(("a", "x"), [BUDGET])
    assert scene.shown() == {("CloneSet", "waiting", "WaitingForBudget"): (2, 5)}


def test_what_is_gone_and_what_another_replica_serves_does_not_count() -> None:
    scene = Scene()
    for name in ("x", "y", "z"):
        scene.sets.planned(("a", name), [BUDGET])
    scene.sets.forget(("a", "x"))
    scene.foreign.add(("a", "y"))
    scene.clock.advance(9)
    assert scene.shown() == {("CloneSet", "waiting", "WaitingForBudget"): (1, 9)}
    scene.foreign.clear()
    scene.sets.planned(("a", "y"), [BUDGET])
    scene.sets.forget(("a", "z"))
    assert scene.shown() == {("CloneSet", "waiting", "WaitingForBudget"): (1, 0)}


def test_there_are_never_more_series_than_reasons_can_be_meant() -> None:
    scene = Scene()
    scene.sets.planned(("a", "x"), [Reason(State.STUCK, f"Code{number}", "x") for number in range(3000)])
    shown = scene.shown()
    assert len(shown) == MOST_REASONS + 1
    assert shown["CloneSet", "stuck", "Other"] == (3000 - MOST_REASONS, 0)


async def test_a_controller_shows_the_reasons_of_its_plans() -> None:
    loop = Loop(lambda *_: Plan(reasons=(BUDGET,)))
    await loop.start()
    await loop.once()
    (family, _) = WAITING.collect()
    labels = {"kind": "CloneSet", "state": "waiting", "reason": "WaitingForBudget"}
    assert [one.value for one in family.samples if one.labels == labels] == [1]
    loop.exists = False
    await loop.once()
    (family, _) = WAITING.collect()
    assert [one.value for one in family.samples if one.labels == labels] == []
