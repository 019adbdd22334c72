"""The budget that OpenKruise left behind: the controller finds its status right, and writes nothing."""

from pathlib import Path
from typing import Any

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget, convert
from flotilla_common.api.workload import Workload
from flotilla_common.control.keystate import Memory
from flotilla_policy.podunavailablebudget.controller import BUDGETS, PODS, WORKLOADS, Gatherer
from flotilla_policy.podunavailablebudget.plan import plan
from tests.support.controller_context import FakeContext
from tests.testkit.documents import decoded
from tests.unit.podunavailablebudget.build import NOW

GOLDEN = Path(__file__).parents[2] / "integration" / "adopt" / "golden"


def items(name: str) -> list[Any]:
    return msgspec.yaml.decode((GOLDEN / f"{name}.yaml").read_bytes())["items"]


def test_it_is_left_alone() -> None:
    context = FakeContext()
    gatherer = Gatherer(context, None)
    pods = [msgspec.convert(one, Pod) for one in items("pods")]
    context.put(PODS, *pods)
    context.put(WORKLOADS[CLONE_SET], *decoded(items("clonesets.v1beta1"), list[Workload]))
    (budget,) = (msgspec.convert(one, PodUnavailableBudget) for one in items("podunavailablebudgets.v1beta1"))
    context.put(BUDGETS, budget)
    found = gatherer.gather(budget.metadata.key, Memory())
    assert found is not None
    assert len(found.pods) == 4
    made = plan(found, NOW)
    assert (made.actions, made.status, made.events) == ([], None, ())
    assert [reason.code for reason in made.reasons] == ["BudgetLeft", "ExpectedByWorkloads"]


def test_both_versions_are_the_same_budget() -> None:
    (old,), (new,) = items("podunavailablebudgets.v1alpha1"), items("podunavailablebudgets.v1beta1")
    assert convert(old, "policy.kruise.io/v1beta1") == new
    assert convert(new, "policy.kruise.io/v1alpha1") == old
