"""Texts of events of PodUnavailableBudgets that the specification fixes word for word.

A text that is changed in the code fails here. podunavailablebudget.md §10.
"""

import pytest

from flotilla_common.control.plan import Event, Plan
from flotilla_policy.podunavailablebudget.plan import plan
from flotilla_webhook.budgets.reports import PREVENTED
from tests.unit.podunavailablebudget.build import NOW, ago, budget, pod, snapshot
from tests.unit.texts.told import events

ENTRY = {"disruptedPods": {"p": ago(25)}}
COUNT = "Warning CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: "


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (plan(snapshot(budget(maxUnavailable=1), 0, []), NOW), "Normal NoPods: No matching pods found"),
        (
            plan(snapshot(budget(status=ENTRY, maxUnavailable=1), 1, [pod("p")], just_read=frozenset({"p"})), NOW),
            "Warning NotDeleted: Pod was expected by PUB ns/pub to be deleted but it wasn't",
        ),
        (plan(snapshot(budget(maxUnavailable=1), 1, [pod("p")], fault="no such kind"), NOW), f"{COUNT}no such kind"),
    ],
)
def test_plans_say(result: Plan, text: str) -> None:
    assert events(result) == {text}


def test_the_webhook_says() -> None:
    assert Event("PubPreventPodDeletion", "openkruise pub prevents pod deletion", warning=True) == PREVENTED
