"""PodUnavailableBudgets as pure functions: which pods are available, what needs budget, and how it is taken.

The webhook, the controller of budgets and the controllers of workloads call the same functions, so that a pod counts
the same for all of them. `availability` decides which pods count (podunavailablebudget.md §6), `decision` what an
update of a pod is (§8.3) and whether a request needs budget (§8.4), and `taking` takes it (§8.6), also in advance.
"""

from flotilla_common.workload.budget.availability import is_available, is_consistent, is_ready, is_unavailable_by_label
from flotilla_common.workload.budget.decision import (
    RESIZE_GATE,
    TRUE_TEXTS,
    Pass,
    is_exempt,
    operation_of_update,
    protected_operations,
    protected_replicas,
    related_budget,
    why_free,
)
from flotilla_common.workload.budget.disruptions import Disruptions
from flotilla_common.workload.budget.taking import (
    Refusal,
    changes_of,
    give,
    give_back,
    has_just_taken,
    has_taken,
    held_by,
    is_about,
    is_any_fresh,
    is_recorded,
    most_ahead,
    status_document,
    take,
    take_ahead,
    without_entry,
)

__all__ = [
    "RESIZE_GATE",
    "TRUE_TEXTS",
    "Disruptions",
    "Pass",
    "Refusal",
    "changes_of",
    "give",
    "give_back",
    "has_just_taken",
    "has_taken",
    "held_by",
    "is_about",
    "is_any_fresh",
    "is_available",
    "is_consistent",
    "is_exempt",
    "is_ready",
    "is_recorded",
    "is_unavailable_by_label",
    "most_ahead",
    "operation_of_update",
    "protected_operations",
    "protected_replicas",
    "related_budget",
    "status_document",
    "take",
    "take_ahead",
    "why_free",
    "without_entry",
]
