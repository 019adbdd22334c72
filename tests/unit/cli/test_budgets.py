"""What `get` and `explain` tell of PodUnavailableBudgets, and of pods that one protects."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from flotilla_cli.views.kindview import PodQuestion
from flotilla_cli.views.podunavailablebudget import VIEW, summary
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, RELATED_BUDGET
from flotilla_common.api.resources import POD
from tests.unit.budget.build import budget, pod, pod_document
from tests.unit.webhook.fakes import FakeApi

NOW = datetime(2026, 3, 1, 8, 0, 30, tzinfo=UTC)
HELD = {"disruptedPods": {"b": "2026-03-01T08:00:20Z"}, "unavailablePods": {"c": "2026-03-01T08:00:25Z"}}
PROTECTS = "PodUnavailableBudget pub protects it (DELETE, EVICT, RESIZE, UPDATE)"
HOLDER = (
    "2 of 3 pods are available and 2 must be; the budget is held by b (deletion, until 2026-03-01T08:00:40Z at most)"
)
USED_UP = {"unavailableAllowed": 0, "currentAvailable": 2}


def stored(**status: Any) -> bytes:
    return msgspec.json.encode(budget(status=status))


async def no_whys(*_: Any) -> dict[str, Any]:
    return {}


def test_get_says_what_is_left_and_who_has_the_rest() -> None:
    told = summary(stored(**HELD))
    assert told.headline == "1 more may become unavailable: 3 of 3 pods are available, 2 must be"
    assert told.rows == [
        ("b", "deletion", "2026-03-01T08:00:20Z", "2026-03-01T08:00:40Z"),
        ("c", "update", "2026-03-01T08:00:25Z", "2026-03-01T08:00:35Z"),
    ]


def test_get_has_no_table_where_nobody_has_anything() -> None:
    assert (summary(stored()).columns, summary(stored()).rows) == ((), [])


async def test_explain_looks_at_the_pods_that_name_it() -> None:
    api = FakeApi()
    for name, named in (("a", "pub"), ("b", "other")):
        api.put(POD, pod_document(name, metadata={"annotations": {RELATED_BUDGET: named}}))
    assert VIEW.related is not None
    related = await VIEW.related(api.api, stored(), NOW)
    assert [one.metadata.name for one in related.pods] == ["a"]


@pytest.mark.parametrize(
    ("metadata", "status", "lines"),
    [
        pytest.param({"annotations": {}}, {}, [], id="no budget"),
        pytest.param(
            {"annotations": {RELATED_BUDGET: "gone"}},
            {},
            ["PodUnavailableBudget gone, which it names, does not exist: it may go"],
            id="a budget that is gone",
        ),
        pytest.param(
            {},
            {},
            [f"{PROTECTS}; it may go now: 1 more may become unavailable"],
            id="some is left",
        ),
        pytest.param(
            {},
            USED_UP | {"disruptedPods": {"b": "2026-03-01T08:00:20Z"}},
            [f"{PROTECTS}; it may not go now: {HOLDER}"],
            id="none is left",
        ),
        pytest.param(
            {},
            USED_UP | {"disruptedPods": {"a": "2026-03-01T08:00:20Z"}},
            [f"{PROTECTS}; it may go now: the budget was taken for the pod already"],
            id="it has the budget",
        ),
    ],
)
async def test_explain_pod(metadata: dict[str, Any], status: dict[str, Any], lines: list[str]) -> None:
    api = FakeApi()
    api.put(POD_UNAVAILABLE_BUDGET, msgspec.json.decode(stored(**status)))
    assert VIEW.about_pod is not None
    question = PodQuestion(api=api.api, pod=pod(metadata=metadata), everything=False, whys=no_whys)
    assert await VIEW.about_pod(question) == lines
