"""What becomes of one PodUnavailableBudget (podunavailablebudget.md §7)."""

from datetime import datetime

from flotilla_common.control.plan import Plan
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot


def plan(snapshot: BudgetSnapshot, now: datetime) -> Plan:
    """Return the plan of one pass."""
    return Plan()
