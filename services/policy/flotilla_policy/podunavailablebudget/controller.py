"""The PodUnavailableBudget controller: what it watches and writes, and what it plans from."""

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.api.resources import POD
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch
from flotilla_common.control.wiring import Wiring
from flotilla_policy.podunavailablebudget.plan import plan
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot


def _in_its_namespace(budget: Json, other: Json) -> bool:
    return member(budget, "metadata").get("namespace") == member(other, "metadata").get("namespace")


BUDGETS = Watch(POD_UNAVAILABLE_BUDGET, PodUnavailableBudget, subresources=("status",))
PODS = Watch(POD, Pod, writes=("patch",), concerns=_in_its_namespace)


class Gatherer:
    """Builds the snapshot of one budget from the mirror's tables."""

    def __init__(self, wiring: Wiring, options: None) -> None:
        self._budgets = wiring.table(BUDGETS)

    def gather(self, key: Key, memory: Memory) -> BudgetSnapshot | None:
        """Return the budget and its surroundings; None when it does not exist."""
        budget = self._budgets.get(*key)
        return None if budget is None else BudgetSnapshot(budget=budget)


CONTROLLER = ControllerSpec(
    name="podunavailablebudget-controller",
    primary=BUDGETS,
    watches=(PODS,),
    build=Gatherer,
    plan=plan,
)
