"""Statuses that are written at once (workloadspread.md §7): each write makes one of the webhook's fail."""

import pytest

from tests.testkit.documents import Json
from tests.unit.workloadspread.build import at, book, planned, pod, spread, subset


def status(*entries: Json, generation: int = 3) -> Json:
    totals = [{key: value for key, value in one.items() if not key.endswith("Pods")} for one in entries]
    return {
        "observedGeneration": generation,
        "subsetStatuses": totals,
        "versionedSubsetStatuses": {"versionIgnored": list(entries)},
    }


ROWS = [
    pytest.param(status(book("a", missingReplicas=1, creatingPods={"p": at(-1)})), False, id="an admitted pod came"),
    pytest.param(status(book("a", replicas=1, missingReplicas=1), generation=2), True, id="another generation"),
    pytest.param(status(book("a", replicas=1, missingReplicas=0)), True, id="a place is free"),
    pytest.param(status(book("a", missingReplicas=2)), True, id="a place is taken"),
    pytest.param({"observedGeneration": 3}, True, id="there is no book"),
]


@pytest.mark.parametrize(("stored", "urgent"), ROWS)
def test_urgent(stored: Json, urgent: bool) -> None:
    made = planned(spread(subset("a", 2), status=stored), [pod("p", "a")])
    assert made.status is not None
    assert made.urgent_status == urgent
