"""Everything that planning one PodUnavailableBudget needs to know, gathered before and frozen."""

import msgspec

from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.control.subject import Subject


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One budget and its surroundings at one moment."""

    budget: PodUnavailableBudget

    @property
    def subject(self) -> Subject:
        """The budget, as events and the bus name it."""
        return Subject.of(POD_UNAVAILABLE_BUDGET, self.budget.metadata)
