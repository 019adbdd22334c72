"""The writes and reasons of a pass over a budget besides the numbers (podunavailablebudget.md §5.2, §7.2)."""

from typing import Any

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Patch, Plan
from flotilla_policy.podunavailablebudget.plan import plan
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot, Counted
from tests.testkit.plans import code_list
from tests.unit.podunavailablebudget.build import BY, LABELS, NOW, ago, budget, pod, pods, snapshot, terminating

STORED = {"observedGeneration": 1, "totalReplicas": 3, "desiredAvailable": 2, "currentAvailable": 3}


def stamped(made: Plan) -> dict[str, dict[str, Any]]:
    return {one.name: one.body["metadata"]["annotations"] for one in made.actions if isinstance(one, Patch)}


@pytest.mark.parametrize(
    ("annotations", "missing", "is_stamped"),
    [
        pytest.param({}, (), True, id="names none"),
        pytest.param({BY: ""}, (), True, id="an empty name"),
        pytest.param({BY: "pub"}, (), False, id="names it"),
        pytest.param({"kruise.io/related-pub": "other"}, (), False, id="names another under the old key"),
        pytest.param({BY: "other"}, (), False, id="names another"),
        pytest.param({BY: "other"}, ("other",), True, id="names one that does not exist"),
    ],
)
def test_pods_get_the_name(annotations: dict[str, str], missing: tuple[str, ...], is_stamped: bool) -> None:
    counted = [pod("a", annotations=annotations)]
    made = plan(snapshot(budget(maxUnavailable=1), 1, counted, missing_budgets=frozenset(missing)), NOW)
    both = {BY: "pub", "kruise.io/related-pub": "pub"}
    assert stamped(made) == ({"a": both} if is_stamped else {})
    assert made.status_after_success


def test_nothing_is_written_where_nothing_differs() -> None:
    given = budget(maxUnavailable=1, status=STORED | {"unavailableAllowed": 1})
    assert plan(snapshot(given, 3, pods(3)), NOW).status is None


def test_the_maps_are_compared_as_instants() -> None:
    entry = ago(1).replace("Z", "+00:00")
    status = STORED | {"unavailableAllowed": 0, "currentAvailable": 2, "disruptedPods": {"p-0": entry}}
    assert plan(snapshot(budget(maxUnavailable=1, status=status), 3, pods(3)), NOW).status is None


@pytest.mark.parametrize(
    ("allowed", "counted", "urgent"),
    [
        pytest.param(1, pods(3, unready=1), True, id="less is left"),
        pytest.param(0, pods(3), True, id="something is left again"),
        pytest.param(1, pods(4), False, id="more is left than before"),
        pytest.param(1, pods(5), True, id="more than twice as much is left"),
        pytest.param(0, pods(3, unready=1), True, id="nothing is left, and fewer are available"),
    ],
)
def test_what_cannot_wait(allowed: int, counted: list[Pod], urgent: bool) -> None:
    given = budget(maxUnavailable=1, status=STORED | {"unavailableAllowed": allowed})
    assert plan(snapshot(given, 3, counted), NOW).urgent_status is urgent


def test_what_brings_a_budget_nearer_to_its_number_can_wait() -> None:
    status = STORED | {"unavailableAllowed": 0, "currentAvailable": 1}
    assert not plan(snapshot(budget(maxUnavailable=1, status=status), 3, pods(3, unready=1)), NOW).urgent_status


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        pytest.param(snapshot(budget(maxUnavailable="many"), 3, pods(3)), "invalid value 'many'", id="a limit"),
        pytest.param(snapshot(budget(), 3, pods(3)), "neither maxUnavailable nor minAvailable is set", id="no limit"),
        pytest.param(snapshot(budget(maxUnavailable=1), 3, [], fault="no such kind"), "no such kind", id="no kind"),
    ],
)
def test_a_number_that_cannot_be_told(given: BudgetSnapshot, fault: str) -> None:
    made = plan(given, NOW)
    (event,) = made.events
    assert (event.reason, event.warning) == ("CalculateExpectedPodCountFailed", True)
    assert event.message.startswith(f"Failed to calculate the number of expected pods: {fault}")
    assert made.status is None
    assert made.errors
    assert code_list(made) == ["CalculateExpectedPodCountFailed"]


def test_it_tells_once_that_there_are_no_pods() -> None:
    given = snapshot(budget(maxUnavailable=1), 0, [])
    first = plan(given, NOW)
    assert plan(snapshot(budget(maxUnavailable=1), 0, [], notes=first.notes), NOW).events == ()


def test_nothing_is_written_while_the_apiserver_is_asked() -> None:
    first = plan(snapshot(budget(maxUnavailable=1), 0, [], pending="CloneSet web"), NOW)
    again = plan(snapshot(budget(maxUnavailable=1), 0, [], pending="CloneSet web", notes=first.notes), NOW)
    assert [(one.status, one.actions, code_list(one)) for one in (first, again)] == [
        (None, [], []),
        (None, [], ["AskingApiserver"]),
    ]


def test_who_uses_it_and_until_when() -> None:
    status = {"disruptedPods": {"p-0": ago(5)}, "unavailablePods": {"p-1": ago(1)}}
    made = plan(snapshot(budget(maxUnavailable=2, status=status), 4, pods(4, unready=1)), NOW)
    assert {reason.code: reason.message for reason in made.reasons} == {
        "BudgetUsedUp": "no budget is left: 1 of 4 pods available, 2 required",
        "BudgetHeld": "it is used by p-1 (being updated, until 2026-03-01T08:00:39Z at most), "
        "p-0 (being deleted, until 2026-03-01T08:00:45Z at most)",
        "PodsUnavailable": "1 pod unavailable: p-3 (not ready since 2026-03-01T07:02:10Z)",
        "ExpectedByWorkloads": "4 pods expected: CloneSet web (4)",
    }
    assert made.numbers == {
        "expected": 4,
        "desired": 2,
        "available": 1,
        "allowed": 0,
        "disrupted": 1,
        "ahead": 0,
        "updating": 1,
    }


@pytest.mark.parametrize(
    ("counted", "terminates", "unavailable", "missing"),
    [
        pytest.param(pods(4), [], None, None, id="all are there"),
        pytest.param(pods(3), [], None, "1 of 4 pods does not exist", id="one is not there"),
        pytest.param(
            pods(3),
            [terminating("z", 20), terminating("y", 30)],
            "2 pods unavailable: z (terminating, due to end by 2026-03-01T08:00:50Z), "
            "y (terminating, due to end by 2026-03-01T08:01:00Z)",
            None,
            id="those that end first come first",
        ),
        pytest.param(
            [pod("b", ready=False, labels=LABELS | {"unavailable-pod.kruise.io/x": ""})],
            [terminating("c")],
            "2 pods unavailable: c (terminating, due to end by 2026-03-01T08:01:00Z), b (unavailable by a label)",
            "2 of 4 pods do not exist",
            id="terminating before others",
        ),
        pytest.param(
            pods(4, unready=4),
            [terminating(f"t-{number}") for number in range(5)],
            "9 pods unavailable: "
            + ", ".join(f"t-{number} (terminating, due to end by 2026-03-01T08:01:00Z)" for number in range(5))
            + " and 4 more",
            None,
            id="only the first are named",
        ),
    ],
)
def test_which_pods_are_not_available(
    counted: list[Pod], terminates: list[Pod], unavailable: str | None, missing: str | None
) -> None:
    made = plan(snapshot(budget(maxUnavailable=1), 4, counted, terminating=terminates), NOW)
    told = {reason.code: reason.message for reason in made.reasons}
    assert (told.get("PodsUnavailable"), told.get("PodsMissing")) == (unavailable, missing)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        pytest.param(snapshot(budget(maxUnavailable=1), 4, pods(4)), "BudgetLeft", id="some is left"),
        pytest.param(snapshot(budget(maxUnavailable=4), 4, pods(4)), "NothingProtected", id="no pod has to be there"),
        pytest.param(
            snapshot(budget(maxUnavailable=1), -1, pods(2), workloads=[Counted("DaemonSet", "web", -1)]),
            "ReplicasUnknown",
            id="a DaemonSet",
        ),
        pytest.param(
            snapshot(budget(maxUnavailable=1, protectTotalReplicas=4), 4, pods(4)), "ExpectedByBudget", id="as it says"
        ),
        pytest.param(
            snapshot(budget(maxUnavailable=1), 1, [pod("a", annotations={BY: "other"})]), "OtherBudget", id="another's"
        ),
    ],
)
def test_reasons(given: BudgetSnapshot, code: str) -> None:
    assert code in code_list(plan(given, NOW))
