"""PodUnavailableBudget: what is left of it, and who uses it."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.views.kindview import KindView, PodQuestion, Related, Summary
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.kinds.podunavailablebudget.types import (
    DELETE,
    DISRUPTED_SECONDS,
    EVICT,
    LEGACY_RELATED_BUDGET,
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
    UNAVAILABLE_SECONDS,
    BudgetStatus,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.moments import later
from flotilla_common.api.resources import POD
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, pages
from flotilla_common.workload.budget import held_by, protected_operations, related_budget, why_free
from flotilla_common.workload.causes import Around

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
    for name, at in status.disruptions.items():
        yield at, name, "deletion", DISRUPTED_SECONDS
    for name, at in status.unavailable_pods.items():
        yield at, name, "update", UNAVAILABLE_SECONDS


def _concerns(stored: Json, pod: Json) -> bool:
    """Return whether the pod names the budget."""
    mine, other = member(stored, "metadata"), member(pod, "metadata")
    annotations = strings(other.get("annotations"))
    name = annotations.get(RELATED_BUDGET) or annotations.get(LEGACY_RELATED_BUDGET)
    return (name, other.get("namespace")) == (mine.get("name"), mine.get("namespace"))


async def _related(api: Api, raw: bytes, now: datetime) -> Related:
    """Read the pods that name the budget: what keeps them from being available uses it up."""
    budget = msgspec.json.decode(raw, type=PodUnavailableBudget)
    namespace, name = budget.metadata.key
    there = [msgspec.json.decode(item, type=Pod) async for page in pages(api, POD, namespace) for item in page.items]
    return Related(pods=[pod for pod in there if related_budget(pod.metadata) == name], basis=Around(now=now))


async def _about_pod(about: PodQuestion) -> Sequence[str]:
    """Tell which budget protects the pod, and whether it may go now."""
    name = related_budget(about.pod.metadata)
    if not name:
        return []
    stored = await found_or_none(about.api.get(POD_UNAVAILABLE_BUDGET, about.pod.metadata.namespace, name))
    if stored is None:
        return [f"PodUnavailableBudget {name}, which it names, does not exist: it may go"]
    return [_told(about.pod, msgspec.json.decode(stored, type=PodUnavailableBudget))]


def _told(pod: Pod, budget: PodUnavailableBudget) -> str:
    name, status = budget.metadata.name, budget.status
    operations = protected_operations(budget, Gates.parse(""))
    try:
        free = why_free(pod, budget, _asked(operations), Gates.parse(""))
    except ValueError as fault:
        return f"PodUnavailableBudget {name} cannot be asked: {fault}"
    protects = f"PodUnavailableBudget {name} protects it ({', '.join(sorted(operations))})"
    if free is not None:
        return f"{protects}; it may go now: {free.value}"
    if status.unavailable_allowed > 0:
        return f"{protects}; it may go now: {status.unavailable_allowed} more may become unavailable"
    return f"{protects}; it may not go now: {held_by(status)}"


def _asked(operations: Collection[str]) -> str:
    """Return the operation that users mean by going, as far as the budget protects from any."""
    return next((one for one in (DELETE, EVICT, *sorted(operations)) if one in operations), DELETE)


VIEW = KindView(
    resource=POD_UNAVAILABLE_BUDGET,
    summary=summary,
    related=_related,
    concerns=_concerns,
    plays_along=True,
    about_pod=_about_pod,
)
