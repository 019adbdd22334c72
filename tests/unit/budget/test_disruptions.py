"""Budget for what the controllers of workloads do to pods (podunavailablebudget.md §9)."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import (
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import rfc3339
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import Patch, Plan
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.watches import Trigger
from flotilla_common.gates import Gates
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.gathering import BUDGETS, BudgetsOfPods
from tests.support.controller_context import FakeContext
from tests.testkit.plans import codes
from tests.unit.budget.build import GATES, NOW, RESIZE_GATES, budget, pod
from tests.unit.cloneset import build as cloneset
from tests.unit.daemonset import build as daemonset
from tests.unit.sidecarset import build as sidecarset
from tests.unit.statefulset import build as statefulset

UPDATES = "PodUnavailableBudgetUpdateGate=true"
IN_PLACE = cloneset.cloneset().replicas(4).max_unavailable("100%").in_place()


def protected(pods: Sequence[Pod], name: str = "pub") -> list[Pod]:
    """Return the pods as the budget protects them."""
    return [_protected(one, name) for one in pods]


def _protected(one: Pod, name: str) -> Pod:
    annotations = {**one.metadata.annotations, RELATED_BUDGET: name}
    meta = msgspec.structs.replace(one.metadata, annotations=annotations)
    return msgspec.convert({**msgspec.to_builtins(one), "metadata": msgspec.to_builtins(meta)}, Pod)


def budgets(allowed: int = 1, namespace: str = "default", **status: Any) -> dict[Key, PodUnavailableBudget]:
    made = budget(metadata={"namespace": namespace}, status={"unavailableAllowed": allowed, **status})
    return {(namespace, "pub"): made}


def claims(result: Plan) -> list[Patch]:
    """Return the writes that take budget."""
    return [one for one in result.actions if isinstance(one, Patch) and one.resource == POD_UNAVAILABLE_BUDGET]


def rollout(found: Mapping[Key, PodUnavailableBudget], pods: Sequence[Pod] | None = None, gates: Gates = GATES) -> Plan:
    there = protected(cloneset.pods("4o")) if pods is None else list(pods)
    return cloneset.planned(IN_PLACE, there, budgets=found, gates=gates)


def why(result: Plan, code: str = "WaitingForBudget") -> str:
    return next((reason.message for reason in result.reasons if reason.code == code), "")


def test_budget_is_taken_before_pods_are_touched() -> None:
    result = rollout(budgets(2))
    (claim,) = claims(result)
    assert result.stages[0].chains == ((claim,),)
    assert result.stages[0].stop_on_failure
    assert (claim.name, claim.subresource, claim.resource_version) == ("pub", "status", "1")
    at = rfc3339(cloneset.NOW)
    entries = {"sample-o1": at, "sample-o2": at}
    assert claim.body == {"status": {"unavailableAllowed": 0, "unavailablePods": entries}}
    assert [one for one in cloneset.summary(result) if one.startswith("update")] == ["update o1", "update o2"]
    assert why(result).startswith("sample-o3, sample-o4 for PodUnavailableBudget pub: ")
    assert "held by sample-o1 (update, until 2026-03-01T12:00:10Z at most)" in why(result)


@pytest.mark.parametrize(
    ("found", "gates", "expected", "claimed"),
    [
        (budgets(0), GATES, 0, 0),
        (budgets(9), GATES, 4, 1),
        (budgets(0), Gates.parse(""), 4, 0),
        (budgets(0, desiredAvailable=0), GATES, 4, 0),
        ({}, GATES, 4, 0),
        (budgets(0, unavailablePods={"sample-o2": rfc3339(cloneset.NOW)}), GATES, 1, 0),
    ],
    ids=["none left", "enough", "gate off", "nothing is desired", "no budget", "taken already"],
)
def test_how_many_pods_are_updated(
    found: Mapping[Key, PodUnavailableBudget], gates: Gates, expected: int, claimed: int
) -> None:
    result = rollout(found, gates=gates)
    assert sum(one.startswith("update") for one in cloneset.summary(result)) == expected
    assert len(claims(result)) == claimed
    assert ("WaitingForBudget" in codes(result)) is (expected < 4)


def test_pods_that_do_not_serve_need_no_budget() -> None:
    result = rollout(budgets(0), protected(cloneset.pods("2o 2o!")))
    assert [one for one in cloneset.summary(result) if one.startswith("update")] == ["update o3", "update o4"]
    assert not claims(result)


def test_pods_outside_of_the_budget_do_not_wait_for_it() -> None:
    there = cloneset.pods("4o")
    result = rollout(budgets(0), [*protected(there[:3]), there[3]])
    assert [one for one in cloneset.summary(result) if one.startswith("update")] == ["update o4"]


def test_a_hook_is_asked_without_budget() -> None:
    builder = cloneset.cloneset().replicas(1).in_place().hook("inPlaceUpdate")
    held = cloneset.pod("o1", "o", labels={"hold": "inPlaceUpdate"})
    result = cloneset.planned(builder, protected([held]), budgets=budgets(0), gates=GATES)
    assert cloneset.summary(result) == ["state o1 PreparingUpdate"]


def test_a_recreation_takes_budget_when_the_pod_is_marked() -> None:
    builder = cloneset.cloneset().replicas(2).max_unavailable("100%")
    result = cloneset.planned(builder, protected(cloneset.pods("2o")), budgets=budgets(1), gates=GATES)
    assert len(claims(result)) == 1
    assert sum(one.startswith("mark") for one in cloneset.summary(result)) == 1


def test_deletions_are_planned_as_far_as_the_budget_reaches() -> None:
    builder = cloneset.cloneset().replicas(1).max_unavailable("100%")
    there = protected(cloneset.pods("4n"))
    result = cloneset.planned(builder, there, budgets=budgets(2))
    assert sum(one.startswith("delete") for one in cloneset.summary(result)) == 2
    assert not claims(result), "the webhook takes it"
    assert why(result)
    result = cloneset.planned(builder, there, budgets=budgets(0), gates="PodUnavailableBudgetDeleteGate=false")
    assert sum(one.startswith("delete") for one in cloneset.summary(result)) == 3


def test_a_pod_that_is_asked_about_twice_takes_budget_once() -> None:
    disruptions = Disruptions(budgets(1), GATES, NOW)
    first, second = pod("a"), pod("b")
    assert [disruptions.try_take(one, "DELETE") for one in (first, first, second, second)] == [True, True, False, False]
    builder = PlanBuilder()
    disruptions.stage(builder)
    assert [reason.objects for reason in builder.reasons] == [("b",)]


def test_a_held_pod_is_recreated_under_a_budget_of_one() -> None:
    builder = statefulset.sts(1).hook("inPlaceUpdate")
    held = protected(statefulset.pods("0A:PreparingUpdate"))
    result = statefulset.planned(builder, held, budgets=budgets(1))
    assert statefulset.summary(result) == ["delete 0"]


def test_a_budget_that_cannot_be_read_keeps_its_pods() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Maybe"}]}
    broken = {("default", "pub"): budget(spec={"ignoredPodSelector": selector})}
    result = rollout(broken)
    assert not [one for one in cloneset.summary(result) if one.startswith("update")]
    assert "Maybe" in why(result, "InvalidBudget")


def test_resizes_are_told_from_updates() -> None:
    old, new = ({"requests": {"cpu": f"{cpu}m"}, "limits": {"cpu": "900m"}} for cpu in (100, 200))
    builder = cloneset.cloneset().replicas(1).in_place().template(_sized(new))
    revisions = cloneset.revisions(_sized(old), _sized(new))
    for gates, found, updated, claimed in (
        (RESIZE_GATES, budgets(0), 1, 0),  # by default a resize is not protected with this gate
        (GATES, budgets(0), 0, 0),
        (GATES, budgets(1), 1, 1),
    ):
        there = [msgspec.convert(_with_resources(one, old), Pod) for one in protected(cloneset.pods("1o"))]
        both = Gates(gates.enabled | {"InPlaceWorkloadVerticalScaling"})
        result = cloneset.planned(builder, there, budgets=found, revisions=revisions, gates=both)
        assert len([one for one in cloneset.summary(result) if one.startswith("update")]) == updated
        assert len(claims(result)) == claimed


def _sized(resources: Mapping[str, Any]) -> dict[str, Any]:
    template = cloneset.template()
    template["spec"]["containers"][0]["resources"] = resources
    return template


def _with_resources(one: Pod, resources: Mapping[str, Any]) -> dict[str, Any]:
    document = msgspec.to_builtins(one)
    document["spec"]["containers"][0] |= {"image": "nginx:2", "resources": resources}
    return document


def test_statefulsets_wait_for_budget() -> None:
    builder = statefulset.sts(5).m(3).in_place()
    there = protected(statefulset.pods("0A 1A 2A 3A 4A"))
    result = statefulset.planned(builder, there, budgets=budgets(2), gates=UPDATES)
    assert [one for one in statefulset.summary(result) if one.startswith("update")] == ["update 4B", "update 3B"]
    assert len(claims(result)) == 1
    assert "WaitingForBudget" in codes(result)
    result = statefulset.planned(statefulset.sts(5).m(3), there, budgets=budgets(1))
    assert statefulset.summary(result) == ["delete 4"]
    result = statefulset.planned(statefulset.sts(2), there, budgets=budgets(0))
    assert statefulset.summary(result) == []
    assert not {"Deleting", "Updating"} & codes(result)


def test_daemonsets_wait_for_budget() -> None:
    there = protected(daemonset.pods("1A 2A 3A 4A 5A"))
    result = daemonset.planned(daemonset.ds().m(3), there, budgets=budgets(1))
    assert daemonset.summary(result) == ["-5A"]
    result = daemonset.planned(daemonset.ds().m(3).in_place(), there, budgets=budgets(1), gates=UPDATES)
    assert len(claims(result)) == 1
    assert "WaitingForBudget" in codes(result)


def test_sidecarsets_wait_for_budget() -> None:
    there = protected(sidecarset.pods("Ax3 A!"))
    spaces = {one.metadata.namespace for one in there}
    assert len(spaces) == 1
    result = sidecarset.planned(sidecarset.side().m("100%"), there, budgets=budgets(1, *spaces), gates=GATES)
    assert len(sidecarset.updated(result)) == 2, "one with budget, and the one that does not serve"
    assert len(claims(result)) == 1
    assert "WaitingForBudget" in codes(result)


def test_whoever_was_planned_with_a_budget_is_planned_again_once_it_allows_more() -> None:
    context = FakeContext()
    finder = BudgetsOfPods(context)
    context.follow(Trigger(BUDGETS, finder.of_budget))
    one = pod()
    assert finder.of(("default", "web"), [one]) == {}
    context.put(BUDGETS, budget(status={"unavailableAllowed": 0}))
    assert list(finder.of(("default", "web"), [one, pod("b", metadata={"annotations": {}})])) == [("default", "pub")]
    context.put(BUDGETS, budget(metadata={"resourceVersion": "2"}, status={"unavailableAllowed": 0}))
    assert not context.woken
    context.put(BUDGETS, budget(metadata={"resourceVersion": "3"}))
    assert context.woken == [("default", "web")]
