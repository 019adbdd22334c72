"""The snapshot that the plan for a PodUnavailableBudget is made from."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.control.subject import Subject
from flotilla_common.gates import Gates


class Counted(msgspec.Struct, frozen=True):
    """A workload, and how many pods it is to have; -1 where it does not say."""

    kind: str
    name: str
    replicas: int


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One budget and its surroundings at one moment."""

    budget: PodUnavailableBudget
    gates: Gates = Gates()
    pods: Sequence[Pod] = ()  # those that count: active, and selected or of the workload
    terminating: Sequence[Pod] = ()  # those that would count if they did not terminate
    workloads: Sequence[Counted] = ()  # of these pods, or the one that is meant
    expected: int = 0  # how many pods there are to be
    named: Mapping[str, Pod] = {}  # pods by whose names the status has entries, whatever their state
    looked_at: frozenset[str] = frozenset()  # names among the entries that the apiserver was asked about just now
    missing_budgets: frozenset[str] = frozenset()  # budgets that these pods name and that do not exist
    pending: str = ""  # what the apiserver is asked before anything can be said
    fault: str = ""  # why the expected number cannot be told
    look_again: datetime | None = None  # when what nobody watches is looked at again
    notes: Mapping[str, str] = {}  # of the pass before

    @property
    def subject(self) -> Subject:
        """Return the budget as events and the bus name it."""
        return Subject.of(POD_UNAVAILABLE_BUDGET, self.budget.metadata)
