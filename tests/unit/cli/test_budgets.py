"""`get` and `explain` of PodUnavailableBudgets, and of pods that one protects."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import (
    DELETE_GATE,
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
    UPDATE_GATE,
)
from flotilla_common.api.podrules import RULES, PodRule, encoded
from flotilla_common.api.resources import POD, VALIDATING, Resource
from flotilla_common.api.rulebounds import EVERY_POD, everywhere
from flotilla_common.api.webhooks import VALIDATING_CONFIGURATION
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import PodQuestion
from flotilla_insight.views.podunavailablebudget import summary
from flotilla_webhook.budgets.match_conditions import removal_rule, updated_rule
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.unit.budget.build import budget, pod, pod_document

DELETED, UPDATED = removal_rule("default"), updated_rule("default")
PLACES = PodRule("WorkloadSpreads", "object.x", "default")
NOW = datetime(2026, 3, 1, 8, 0, 30, tzinfo=UTC)
VIEW = view_of(POD_UNAVAILABLE_BUDGET)
HELD = {"disruptedPods": {"b": "2026-03-01T08:00:20Z"}, "unavailablePods": {"c": "2026-03-01T08:00:25Z"}}
RESIZES = "RESIZE unless the gate InPlacePodVerticalScaling is on"
PROTECTS = f"PodUnavailableBudget pub protects it (DELETE, EVICT, UPDATE, {RESIZES})"
MAY_GO = "it may be disrupted now: 1 more may become unavailable"
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
            ["PodUnavailableBudget gone, which it names, does not exist: it may be disrupted"],
            id="a budget that is gone",
        ),
        pytest.param(
            {}, {}, [f"{PROTECTS}; it may be disrupted now: 1 more may become unavailable"], id="some is left"
        ),
        pytest.param(
            {},
            USED_UP | {"disruptedPods": {"b": "2026-03-01T08:00:20Z"}},
            [f"{PROTECTS}; it may not be disrupted now: {HOLDER}"],
            id="none is left",
        ),
        pytest.param(
            {},
            USED_UP | {"disruptedPods": {"a": "2026-03-01T08:00:20Z"}},
            [f"{PROTECTS}; it may be disrupted now: the budget was taken for the pod already"],
            id="it has the budget",
        ),
    ],
)
async def test_explain_pod(metadata: dict[str, Any], status: dict[str, Any], lines: list[str]) -> None:
    assert await told_of_pod(with_rules(DELETED, UPDATED), stored(**status), metadata) == lines


async def told_of_pod(api: FakeApi, given: bytes, metadata: Json | None = None) -> Sequence[str]:
    api.put(POD_UNAVAILABLE_BUDGET, msgspec.json.decode(given))
    assert VIEW.about_pod is not None
    question = PodQuestion(api=api.api, pod=pod(metadata=metadata or {}), everything=False, whys=no_whys)
    return await VIEW.about_pod(question)


def with_rules(*rules: PodRule) -> FakeApi:
    """Return a cluster whose webhook configuration has these rules."""
    api = FakeApi()
    api.put(VALIDATING, {"metadata": {"name": VALIDATING_CONFIGURATION, "annotations": {RULES: encoded(rules)}}})
    return api


NOT_ASKED = "the apiserver does not call the webhook for pods of its namespace (see flotilla doctor)"


@pytest.mark.parametrize(
    ("rules", "operations", "told"),
    [
        pytest.param(
            [DELETED],
            [],
            f"protects it (DELETE, EVICT; UPDATE only with the gate {UPDATE_GATE}, which is off); {MAY_GO}",
            id="updates are off",
        ),
        pytest.param([DELETED], ["EVICT"], f"protects it (EVICT); {MAY_GO}", id="nothing that is off is named"),
        pytest.param(
            [UPDATED],
            [],
            f"protects it (UPDATE, {RESIZES}; DELETE and EVICT only with the gate {DELETE_GATE}, which is off); "
            f"{MAY_GO}",
            id="deletions are off",
        ),
        pytest.param(
            [DELETED, UPDATED], ["RESIZE", "UPDATE"], f"protects it (RESIZE, UPDATE); {MAY_GO}", id="resizes are named"
        ),
        pytest.param(
            [DELETED],
            ["UPDATE"],
            f"does not protect it now: UPDATE only with the gate {UPDATE_GATE}, which is off",
            id="it names only what is off",
        ),
        pytest.param([], [], f"does not protect it now: {NOT_ASKED}", id="no rule"),
        pytest.param([removal_rule("other"), PLACES], [], f"does not protect it now: {NOT_ASKED}", id="other rules"),
        pytest.param(
            [everywhere(DELETED)],
            ["DELETE"],
            f"protects it (DELETE); {MAY_GO}",
            id="a rule about the budgets of all namespaces",
        ),
        pytest.param([EVERY_POD], ["DELETE"], f"protects it (DELETE); {MAY_GO}", id="a rule about every pod"),
    ],
)
async def test_what_a_pod_is_protected_from(rules: list[PodRule], operations: list[str], told: str) -> None:
    given = msgspec.json.encode(budget(spec={"protectOperations": operations}))
    assert await told_of_pod(with_rules(*rules), given) == [f"PodUnavailableBudget pub {told}"]


async def test_a_cluster_without_the_webhook_protects_nothing() -> None:
    (told,) = await told_of_pod(FakeApi(), stored())
    assert told == f"PodUnavailableBudget pub does not protect it now: {NOT_ASKED}"


@pytest.mark.parametrize("failure", [ApiError(403, "Forbidden", "no"), Unreachable("no")], ids=str)
async def test_a_configuration_that_cannot_be_read(failure: Exception) -> None:
    api = FakeApi()
    read = api.get

    async def get(resource: Resource, *place: str) -> bytes:
        if resource == VALIDATING:
            raise failure
        return await read(resource, *place)

    api.get = get  # type: ignore[method-assign]
    assert await told_of_pod(api, stored()) == [
        f"{PROTECTS[:-1]}; updates only while the gate {UPDATE_GATE} is on); {MAY_GO}"
    ]
