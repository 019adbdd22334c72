"""The worked examples of a budget's status (podunavailablebudget.md §12.1), by their numbers."""

import pytest

from flotilla_policy.podunavailablebudget.plan import plan
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot
from tests.testkit.documents import Json
from tests.unit.podunavailablebudget.build import NOW, ago, budget, pod, pods, snapshot, terminating

Counts = tuple[int, int, int, int]


def entries(prefix: str, number: int, seconds: float, start: int = 0) -> dict[str, str]:
    return {f"{prefix}-{index}": ago(seconds) for index in range(start, start + number)}


DISRUPTED, UNAVAILABLE = entries("p", 6, 1), entries("p", 4, 1, start=6)
FRESH: Json = {"disruptedPods": DISRUPTED, "unavailablePods": UNAVAILABLE}
LATE_UPDATES = {"unavailablePods": entries("p", 2, 11, start=6) | entries("p", 2, 1, start=8)}
LATE_DELETIONS = {"disruptedPods": entries("p", 3, 21) | entries("p", 3, 1, start=3)}
UNAVAILABLE_LABEL = {"app": "web", "unavailable-pod.kruise.io/x": ""}

EXAMPLES: list[tuple[int, BudgetSnapshot, Counts]] = [
    (1, snapshot(budget(maxUnavailable=1), 0, []), (0, 0, 0, 0)),
    (2, snapshot(budget(maxUnavailable=0), 3, pods(3)), (3, 3, 3, 0)),
    (3, snapshot(budget(maxUnavailable=2), 6, pods(6)), (6, 4, 6, 2)),
    (4, snapshot(budget(maxUnavailable="30%"), 7, pods(7)), (7, 4, 7, 3)),
    (5, snapshot(budget(maxUnavailable="30%"), 3, pods(3)), (3, 2, 3, 1)),
    (6, snapshot(budget(maxUnavailable="30%"), 0, []), (0, 0, 0, 0)),
    (7, snapshot(budget(maxUnavailable="15%"), 13, pods(13)), (13, 11, 13, 2)),
    (8, snapshot(budget(maxUnavailable="10%"), 21, pods(21)), (21, 18, 21, 3)),
    (9, snapshot(budget(maxUnavailable="25%"), 8, pods(11, unready=2)), (8, 6, 9, 3)),
    (10, snapshot(budget(maxUnavailable="25%"), 12, pods(12, unready=1)), (12, 9, 11, 2)),
    (11, snapshot(budget(maxUnavailable="30%"), 0, pods(7)), (0, 0, 7, 7)),
    (12, snapshot(budget(maxUnavailable="30%"), 0, []), (0, 0, 0, 0)),
    (13, snapshot(budget(maxUnavailable="30%", protectTotalReplicas=14), 14, pods(9)), (14, 9, 9, 0)),
    (14, snapshot(budget(minAvailable=20), 8, pods(8, unready=3)), (8, 20, 5, 0)),
    (15, snapshot(budget(minAvailable="50%"), 9, pods(9, unready=4)), (9, 5, 5, 0)),
    (16, snapshot(budget(minAvailable="80%"), 9, pods(9)), (9, 8, 9, 1)),
    (17, snapshot(budget(maxUnavailable="20%", status=FRESH), 60, pods(60)), (60, 48, 50, 2)),
    (18, snapshot(budget(maxUnavailable="20%", status=FRESH), 60, pods(57)), (60, 48, 47, 0)),
    (
        19,
        snapshot(
            budget(maxUnavailable="20%", status=FRESH | LATE_UPDATES),
            60,
            pods(60)[3:],
            [terminating(f"p-{index}") for index in range(3)],
            just_read=frozenset({"p-6", "p-7"}),
        ),
        (60, 48, 52, 4),
    ),
    (
        20,
        snapshot(
            budget(maxUnavailable="20%", status=LATE_DELETIONS | LATE_UPDATES),
            60,
            pods(57),
            just_read=frozenset({"p-0", "p-1", "p-2", "p-6", "p-7"}),
        ),
        (60, 48, 52, 4),
    ),
    (
        21,
        snapshot(
            budget(maxUnavailable="50%", protectTotalReplicas=30, status={"disruptedPods": entries("p", 2, 1)}),
            30,
            pods(40),
        ),
        (30, 15, 38, 23),
    ),
    (22, snapshot(budget(maxUnavailable=1), -1, pods(4)), (-1, 0, 4, 4)),
    (23, snapshot(budget(maxUnavailable=2), 5, [*pods(4), pod("x", labels=UNAVAILABLE_LABEL)]), (5, 3, 4, 1)),
    (24, snapshot(budget(maxUnavailable=2), 5, pods(5)), (5, 3, 5, 2)),
    (25, snapshot(budget(maxUnavailable=7), 5, pods(5)), (5, 0, 5, 5)),
]


def status_of(given: BudgetSnapshot) -> Json:
    patch = plan(given, NOW).status
    assert patch is not None
    assert patch.resource_version == "7"
    return patch.body["status"]


@pytest.mark.parametrize(("given", "counts"), [pytest.param(*rest, id=str(number)) for number, *rest in EXAMPLES])
def test_what_is_counted(given: BudgetSnapshot, counts: Counts) -> None:
    status = status_of(given)
    names = ("totalReplicas", "desiredAvailable", "currentAvailable", "unavailableAllowed")
    assert tuple(status[name] for name in names) == counts
    assert status["observedGeneration"] == 1


def test_every_example_is_here() -> None:
    assert [number for number, *_ in EXAMPLES] == list(range(1, 26))


@pytest.mark.parametrize(("number", "kept"), [(19, (3, 2)), (20, (3, 2))])
def test_what_is_kept_of_the_maps(number: int, kept: tuple[int, int]) -> None:
    given = EXAMPLES[number - 1][1]
    status, written = given.budget.status, status_of(given)
    dropped = [sum(at is None for at in written.get(key, {}).values()) for key in ("disruptedPods", "unavailablePods")]
    assert (len(status.disrupted_pods) - dropped[0], len(status.unavailable_pods) - dropped[1]) == kept


def test_events_of_the_examples() -> None:
    no_pods, not_deleted = plan(EXAMPLES[0][1], NOW), plan(EXAMPLES[19][1], NOW)
    assert [(one.reason, one.message, one.warning) for one in no_pods.events] == [
        ("NoPods", "No matching pods found", False)
    ]
    assert [one.about.name for one in not_deleted.events if one.about] == ["p-0", "p-1", "p-2"]
    assert {(one.reason, one.message, one.warning) for one in not_deleted.events} == {
        ("NotDeleted", "Pod was expected by PUB ns/pub to be deleted but it wasn't", True)
    }
