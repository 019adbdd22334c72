"""The ledger of a PodUnavailableBudget's status, for requests that take budget (podunavailablebudget.md §8.6)."""

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.podunavailablebudget.types import (
    POD_UNAVAILABLE_BUDGET,
    BudgetStatus,
    PodUnavailableBudget,
)
from flotilla_common.workload.budget import changes_of
from flotilla_webhook.ledger import Ledger, Page


class Draft:
    """The status after the requests of one write."""

    def __init__(self, status: BudgetStatus) -> None:
        self.status = status


BudgetLedger = Ledger[PodUnavailableBudget, Draft]


def _changes(budget: PodUnavailableBudget, draft: Draft) -> Json:
    return changes_of(budget.status, draft.status)


PAGE: Page[PodUnavailableBudget, Draft] = Page(
    POD_UNAVAILABLE_BUDGET, PodUnavailableBudget, lambda budget: Draft(budget.status), _changes
)
