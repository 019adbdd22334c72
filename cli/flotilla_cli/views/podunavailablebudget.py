"""PodUnavailableBudget: what is left of it, and who uses it."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from flotilla_cli.views.kindview import KindView, Summary
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.kinds.podunavailablebudget.types import (
    DISRUPTED_SECONDS,
    LEGACY_RELATED_BUDGET,
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
    UNAVAILABLE_SECONDS,
    BudgetStatus,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.moments import later

_COLUMNS = ("POD", "TAKEN FOR", "SINCE", "UNTIL AT MOST")


def summary(raw: bytes) -> Summary:
    """Tell how many more pods may become unavailable, and for which pods budget is taken."""
    budget = msgspec.json.decode(raw, type=PodUnavailableBudget)
    status = budget.status
    counted = f"{status.current_available} of {status.total_replicas} pods are available, {status.desired_available}"
    headline = f"{status.unavailable_allowed} more may become unavailable: {counted} must be"
    rows = [
        (name, what, rfc3339(at), rfc3339(later(at, seconds))) for at, name, what, seconds in sorted(_entries(status))
    ]
    return Summary(headline, _COLUMNS if rows else (), rows)


def _entries(status: BudgetStatus) -> Iterator[tuple[datetime, str, str, float]]:
    """Yield since when, which pod, for what, and for how many seconds at most."""
    for name, at in status.disrupted_pods.items():
        yield at, name, "deletion", DISRUPTED_SECONDS
    for name, at in status.unavailable_pods.items():
        yield at, name, "update", UNAVAILABLE_SECONDS


def _concerns(stored: Json, pod: Json) -> bool:
    """Return whether the pod names the budget."""
    mine, other = member(stored, "metadata"), member(pod, "metadata")
    annotations = strings(other.get("annotations"))
    name = annotations.get(RELATED_BUDGET) or annotations.get(LEGACY_RELATED_BUDGET)
    return (name, other.get("namespace")) == (mine.get("name"), mine.get("namespace"))


VIEW = KindView(resource=POD_UNAVAILABLE_BUDGET, summary=summary, concerns=_concerns, plays_along=True)
