"""The books of a WorkloadSpread (workloadspread.md §8.5 and §8.6): the rows of both tables."""

from typing import Any

import pytest

from flotilla_common.api.kinds.workloadspread.types import PLACE, WorkloadSpread
from flotilla_topology.workloadspread.plan import plan
from flotilla_topology.workloadspread.snapshot import WorkloadSpreadSnapshot
from tests.testkit.documents import Json, decoded
from tests.testkit.tables import cases
from tests.unit.workloadspread.build import NOW, at, book, entries, planned, pod, spread, subset

TERMINATING: Json = {"deletionTimestamp": at(5)}


def many(count: int, **more: Any) -> list[Json]:
    return [pod(f"p{number}", "a", **more) for number in range(1, count + 1)]


ROWS: list[tuple[Any, ...]] = [
    ("T1", 5, {}, [], (0, 5), {}),
    ("T2", None, {}, many(7), (7, -1), {}),
    ("T3", 4, {}, [*many(3), pod("x", "a", phase="Succeeded")], (3, 1), {}),
    ("T4", 4, {}, [*many(3), pod("x", "a", **TERMINATING)], (3, 1), {}),
    ("T5", 3, {}, many(5), (5, 0), {}),
    ("T6", 4, {"creatingPods": {"p9": at(-2)}}, many(3), (3, 0), {"creatingPods": {"p9": at(-2)}}),
    ("T7", 4, {"creatingPods": {"p9": at(-31)}}, many(3), (3, 1), {}),
    ("T8", 4, {"creatingPods": {"u1": at(-2)}}, [pod("x", "a", uid="u1")], (1, 3), {}),
    (
        "one before it of its name goes",
        4,
        {"creatingPods": {"u1": at(-2)}},
        [pod("x", "a", **TERMINATING)],
        (0, 3),
        {"creatingPods": {"u1": at(-2)}},
    ),
    ("T9", 4, {"deletingPods": {"p1": at(-3)}}, many(4), (4, 1), {"deletingPods": {"p1": at(-3)}}),
    ("T10", 4, {"deletingPods": {"p1": at(-16)}}, many(4), (4, 0), {}),
    ("T11", 4, {"deletingPods": {"p1": at(-3)}}, [pod("p1", "a", **TERMINATING), *many(4)[1:]], (3, 1), {}),
    ("T12", "25%", {}, many(1), (1, 2), {}),
    ("seen by its name", 4, {"creatingPods": {"p1": at(-2)}}, many(1), (1, 3), {}),
    ("seen by its token", 4, {"creatingPods": {"ahead/w/t": at(-2)}}, [pod("p1", "a", uid="t")], (1, 3), {}),
    (
        "seen by the token of a pod with a name",
        4,
        {"creatingPods": {"ahead/w/t": at(-2)}},
        [pod("p1", "a", annotations={PLACE: "t"})],
        (1, 3),
        {},
    ),
    ("taken ahead", 4, {"creatingPods": {"ahead/w/t": at(-2)}}, [], (0, 3), {"creatingPods": {"ahead/w/t": at(-2)}}),
    ("taken ahead by nobody", 4, {"creatingPods": {"ahead/w/t": at(-31)}}, [], (0, 4), {}),
    ("seen though it has ended", 4, {"creatingPods": {"p1": at(-2)}}, many(1, phase="Failed"), (0, 4), {}),
]


@pytest.mark.parametrize(("limit", "held", "pods", "numbers", "maps"), cases(ROWS))
def test_one_subset(
    limit: int | str | None, held: Json, pods: list[Json], numbers: tuple[int, int], maps: Json
) -> None:
    status = {"subsetStatuses": [book("a", **held)]} if held else {}
    made = planned(spread(subset("a", limit), status=status), pods)
    (entry,) = entries(made)
    assert (entry["replicas"], entry["missingReplicas"]) == numbers
    assert {key: entry[key] for key in ("creatingPods", "deletingPods") if key in entry} == maps


@pytest.mark.parametrize(
    ("held", "pods", "reason", "message"),
    [
        (
            {"creatingPods": {"p9": at(-31)}},
            [],
            "CreatePodFailed",
            "Pod ns/p9 was expected to be created but it wasn't",
        ),
        (
            {"deletingPods": {"p1": at(-16)}},
            many(1),
            "DeletePodFailed",
            "Pod ns/p1 was expected to be deleted but it wasn't",
        ),
    ],
)
def test_pods_that_never_come_or_never_go(held: Json, pods: list[Json], reason: str, message: str) -> None:
    made = planned(spread(subset("a", 4), status={"subsetStatuses": [book("a", **held)]}), pods)
    (event,) = made.events
    assert (event.reason, event.message, event.warning) == (reason, message, True)


def test_no_pod_is_missed_that_never_was() -> None:
    """The webhook that had taken the place ahead has died."""
    made = planned(spread(subset("a", 4), status={"subsetStatuses": [book("a", creatingPods={"ahead/w/t": at(-31)})]}))
    assert made.events == ()


@pytest.mark.parametrize(
    ("held", "pods", "seconds"),
    [({"creatingPods": {"p9": at(-2)}}, [], 28), ({"deletingPods": {"p1": at(-3)}}, many(1), 12)],
)
def test_it_is_planned_again_when_places_are_given_away(held: Json, pods: list[Json], seconds: int) -> None:
    made = planned(spread(subset("a", 4), status={"subsetStatuses": [book("a", **held)]}), pods)
    assert made.wake_at is not None
    assert (made.wake_at - NOW).total_seconds() == seconds


def test_percentages_are_rounded_up() -> None:
    """T13 and T14."""
    half = (subset("a", "50%"), subset("b", "50%"))
    assert [one["missingReplicas"] for one in entries(planned(spread(*half), replicas=7))] == [4, 4]
    assert [one["missingReplicas"] for one in entries(planned(spread(*half), replicas=0))] == [0, 0]


def test_a_subset_that_left_the_spec_is_not_listed() -> None:
    """T17."""
    made = planned(spread(subset("b"), status={"subsetStatuses": [book("a"), book("b")]}), many(3))
    assert [one["name"] for one in entries(made)] == ["b"]


def test_the_history_of_subsets_stays_when_they_change_places() -> None:
    held = [book("a", creatingPods={"p9": at(-2)}), book("b")]
    made = planned(spread(subset("b", 3), subset("a", 3), status={"subsetStatuses": held}))
    assert [one.get("creatingPods") for one in entries(made)] == [None, {"p9": at(-2)}]


def test_a_version_without_pods_stays_while_one_is_on_its_way() -> None:
    """T18."""
    held = {"v1": [book("a", creatingPods={"x": at(-5)})], "v0": [book("a")]}
    made = planned(spread(subset("a", 4), status={"versionedSubsetStatuses": held}), many(1), versions={"p1": "v2"})
    assert made.status is not None
    written = made.status.body["status"]["versionedSubsetStatuses"]
    assert written["v1"] == [book("a", missingReplicas=3, creatingPods={"x": at(-5)})]
    assert (written["v0"], written["v2"]) == (None, [book("a", replicas=1, missingReplicas=3)])


def test_the_same_status_is_not_written_again() -> None:
    document = spread(subset("a", 4))
    first = planned(document, many(1))
    assert first.status is not None
    document["status"] = first.status.body["status"]
    assert planned(document, many(1)).status is None


def test_the_status_is_written_on_the_version_that_was_planned_with() -> None:
    made = planned(spread(subset("a", 4)))
    assert made.status is not None
    assert made.status.resource_version == "7"
    assert made.status_after_success


def condition(made_or_held: Json) -> tuple[str, str] | None:
    found = next(iter(made_or_held.get("conditions", [])), None)
    return (found["status"], found["reason"]) if found else None


FALSE, TRUE = ("False", "PodUnschedulable"), ("True", "Sufficient")


def marked(seconds: float) -> Json:
    """Return subset `a`, marked for this many seconds."""
    return book(
        "a",
        conditions=[
            {"type": "Schedulable", "status": "False", "reason": "PodUnschedulable", "lastTransitionTime": at(-seconds)}
        ],
    )


AB = (subset("a", 3), subset("b"))
RESCHEDULING: list[tuple[Any, ...]] = [
    ("K1", 20, None, [pod("p", "a", stuck=25)], FALSE, None),
    ("K2", 20, None, [pod("p", "a", stuck=12)], TRUE, 8),
    ("K3", 20, None, [pod("p", "a", node="", phase="Pending")], TRUE, None),
    ("K4", 20, None, [pod("p", "a", phase="Pending")], TRUE, None),
    ("K5", 20, marked(200), [], FALSE, 100),
    ("K6", 20, marked(301), [], TRUE, None),
    ("K7", 20, None, [pod("p", "b", stuck=99)], TRUE, None),
    ("K8", 0, None, [pod("p", "a", stuck=99)], None, None),
    ("K9", 0, marked(10), [], None, None),
]


@pytest.mark.parametrize(("patience", "held", "pods", "expected", "seconds"), cases(RESCHEDULING))
def test_subsets_whose_pods_find_no_node(
    patience: int, held: Json | None, pods: list[Json], expected: tuple[str, str] | None, seconds: int | None
) -> None:
    status = {"subsetStatuses": [held, book("b")]} if held else {}
    made = planned(spread(*AB, patience=patience, status=status), pods)
    first, last = entries(made)
    assert condition(first) == expected
    assert condition(last) == (TRUE if patience else None)
    wait = None if made.wake_at is None else round((made.wake_at - NOW).total_seconds())
    assert wait == seconds


def test_a_book_that_begins_knows_of_the_mark() -> None:
    """All pods had left the marked subset, and its book was closed, when the first one elsewhere was seen."""
    marked = {"type": "Schedulable", "status": "False", "reason": "PodUnschedulable", "lastTransitionTime": at(-9)}
    status = {"subsetStatuses": [book("a", conditions=[marked]), book("b")]}
    made = planned(spread(subset("a", 2), subset("b"), patience=20, status=status), [pod("p", "b")])
    assert made.status is not None
    (held, _) = made.status.body["status"]["versionedSubsetStatuses"]["versionIgnored"]
    assert [(one["status"], one["lastTransitionTime"]) for one in held["conditions"]] == [("False", at(-9))]


def test_a_mark_that_is_there_keeps_its_time() -> None:
    made = planned(
        spread(*AB, patience=20, status={"subsetStatuses": [marked(500), book("b")]}), [pod("p", "a", stuck=25)]
    )
    (held,) = marked(500)["conditions"]
    assert entries(made)[0]["conditions"] == [held | {"message": ""}]


def test_a_recovery_is_told_once() -> None:
    status = {"subsetStatuses": [marked(301), book("b")], "versionedSubsetStatuses": {"v": [marked(301), book("b")]}}
    made = planned(spread(*AB, patience=20, status=status), [pod("p", "b")], versions={"p": "v"})
    (event,) = made.events
    message = "Subset a of WorkloadSpread ns/ws is recovered from unschedulable to schedulable"
    assert (event.reason, event.message, event.warning) == ("RecoverSchedulable", message, False)


def test_pods_are_deleted_only_once_the_mark_stands() -> None:
    document = spread(*AB, patience=20)
    pods = [pod("p", "a", stuck=25), pod("q", "a", stuck=25)]
    first = planned(document, pods)
    assert [one for one in first.actions if one.verb == "delete"] == []
    assert first.status is not None
    document["status"] = first.status.body["status"]
    second = planned(document, pods, replicas=2)
    assert [one.name for one in second.actions if one.verb == "delete"] == ["p", "q"]
    assert [reason.code for reason in second.reasons] == ["SubsetUnschedulable"]


def test_a_target_that_is_not_there_yet() -> None:
    made = plan(WorkloadSpreadSnapshot(spread=decoded(spread(subset("a", "50%")), WorkloadSpread)), NOW)
    assert entries(made) == [book("a")]
    assert [reason.code for reason in made.reasons] == ["WaitingForTarget"]


def test_a_target_whose_pods_cannot_be_counted() -> None:
    document = decoded(spread(subset("a")), WorkloadSpread)
    made = plan(WorkloadSpreadSnapshot(spread=document, unreadable="the workload has no spec.x"), NOW)
    assert ([reason.code for reason in made.reasons], made.status, bool(made.errors)) == (["InvalidTarget"], None, True)
