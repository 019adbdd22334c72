"""PodUnavailableBudget: what is left, and the pods that it is taken for."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.kinds.podunavailablebudget.types import (
    DELETE,
    DELETE_GATE,
    DISRUPTED_SECONDS,
    EVICT,
    LEGACY_RELATED_BUDGET,
    OPERATIONS,
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
    RESIZE,
    UNAVAILABLE_SECONDS,
    UPDATE,
    UPDATE_GATE,
    BudgetStatus,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import later, metadata_of, rfc3339
from flotilla_common.api.podrules import RULES, PodRule, decoded
from flotilla_common.api.resources import POD, VALIDATING
from flotilla_common.api.webhooks import VALIDATING_CONFIGURATION
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, pages
from flotilla_common.workload.budget import RESIZE_GATE, held_by, protected_operations, related_budget, why_free
from flotilla_common.workload.causes import PodContext
from flotilla_insight.views.kindview import KindView, PodQuestion, Related, Summary

_RESIZES_APART = Gates.parse(f"{RESIZE_GATE}=true")
"""With this gate a budget protects from exactly the operations that it names."""

_COLUMNS = ("POD", "TAKEN FOR", "SINCE", "UNTIL AT MOST")


def summary(raw: bytes) -> Summary:
    """Describe how many more pods may become unavailable, and the pods that budget is taken for."""
    budget = msgspec.json.decode(raw, type=PodUnavailableBudget)
    status = budget.status
    counted = f"{status.current_available} of {status.total_replicas} pods are available, {status.desired_available}"
    headline = f"{status.unavailable_allowed} more may become unavailable: {counted} must be"
    rows = [
        (name, what, rfc3339(at), rfc3339(later(at, seconds))) for at, name, what, seconds in sorted(_entries(status))
    ]
    return Summary(headline, _COLUMNS if rows else (), rows)


def _entries(status: BudgetStatus) -> Iterator[tuple[datetime, str, str, float]]:
    """Yield time, pod, operation, and the limit in seconds."""
    for name, at in status.disruptions.items():
        yield at, name, "deletion", DISRUPTED_SECONDS
    for name, at in status.unavailable_pods.items():
        yield at, name, "update", UNAVAILABLE_SECONDS


def _concerns(stored: Json, pod: Json) -> bool:
    """Report whether the pod names the budget."""
    mine, other = member(stored, "metadata"), member(pod, "metadata")
    annotations = strings(other.get("annotations"))
    name = annotations.get(RELATED_BUDGET) or annotations.get(LEGACY_RELATED_BUDGET)
    return (name, other.get("namespace")) == (mine.get("name"), mine.get("namespace"))


async def _related(api: Api, raw: bytes, now: datetime) -> Related:
    """Read the pods that name the budget: unavailable ones use it up."""
    budget = msgspec.json.decode(raw, type=PodUnavailableBudget)
    namespace, name = budget.metadata.key
    there = [msgspec.json.decode(item, type=Pod) async for page in pages(api, POD, namespace) for item in page.items]
    return Related(pods=[pod for pod in there if related_budget(pod.metadata) == name], basis=PodContext(now=now))


class _Asked(msgspec.Struct, frozen=True):
    """The requests about pods of a namespace that the apiserver sends to the webhook.

    No budget protects from others.
    """

    operations: Collection[str] = OPERATIONS
    known: bool = True


async def _asked_about(api: Api, namespace: str) -> _Asked:
    """Return these requests, by the rules in the webhook configuration, which follow gates and budgets."""
    try:
        stored = await found_or_none(api.get(VALIDATING, "", VALIDATING_CONFIGURATION))
    except (ApiError, Unreachable):
        return _Asked(known=False)
    annotations = {} if stored is None else metadata_of(stored).annotations
    rules = [one for one in decoded(annotations.get(RULES, "")) if _is_of_budgets(one, namespace)]
    going = (DELETE, EVICT) if any(not rule.updates for rule in rules) else ()
    updated = (UPDATE, RESIZE) if any(rule.updates for rule in rules) else ()
    return _Asked((*going, *updated))


def _is_of_budgets(rule: PodRule, namespace: str) -> bool:
    """Report whether the rule is about pods of the namespace that name a budget, or about every pod."""
    return rule.namespace in ("", namespace) and (RELATED_BUDGET in rule.expression or rule.expression == "true")


async def _about_pod(about: PodQuestion) -> Sequence[str]:
    """Describe which budget protects the pod from what, and whether it may be deleted now."""
    name = related_budget(about.pod.metadata)
    if not name:
        return []
    stored = await found_or_none(about.api.get(POD_UNAVAILABLE_BUDGET, about.pod.metadata.namespace, name))
    if stored is None:
        return [f"PodUnavailableBudget {name}, which it names, does not exist: it may be disrupted"]
    asked = await _asked_about(about.api, about.pod.metadata.namespace)
    return [_told(about.pod, msgspec.json.decode(stored, type=PodUnavailableBudget), asked)]


def _told(pod: Pod, budget: PodUnavailableBudget, asked: _Asked) -> str:
    name, status = budget.metadata.name, budget.status
    operations = protected_operations(budget, _RESIZES_APART)
    protected = operations & set(asked.operations)
    if not protected:
        return f"PodUnavailableBudget {name} does not protect it now: {_left_out(operations, asked)}"
    try:
        free = why_free(pod, budget, _going(protected), _RESIZES_APART)
    except ValueError as fault:
        return f"PodUnavailableBudget {name} cannot be evaluated: {fault}"
    protects = f"PodUnavailableBudget {name} protects it ({_operations(operations, asked)})"
    if free is not None:
        return f"{protects}; it may be disrupted now: {free.value}"
    if status.unavailable_allowed > 0:
        return f"{protects}; it may be disrupted now: {status.unavailable_allowed} more may become unavailable"
    return f"{protects}; it may not be disrupted now: {held_by(status)}"


def _operations(operations: Collection[str], asked: _Asked) -> str:
    """Return the operations that the pod is protected from, and why not from others that the budget names."""
    names = [one for one in sorted(operations) if one in asked.operations]
    if UPDATE in names and RESIZE not in names:
        names.append(f"RESIZE unless the gate {RESIZE_GATE} is on")
    left_out = _left_out(operations, asked)
    return f"{', '.join(names)}{f'; {left_out}' if left_out else ''}"


def _left_out(operations: Collection[str], asked: _Asked) -> str:
    """Return why the pod is not protected from some of the budget's operations; empty if it is from all."""
    if not asked.known:
        return f"updates only while the gate {UPDATE_GATE} is on" if UPDATE in operations else ""
    if not asked.operations:
        return "the apiserver does not call the webhook for pods of its namespace (see flotilla doctor)"
    missing = [one for one in sorted(operations) if one not in asked.operations]
    if not missing:
        return ""
    gate = DELETE_GATE if {DELETE, EVICT} & set(missing) else UPDATE_GATE
    return f"{' and '.join(missing)} only with the gate {gate}, which is off"


def _going(operations: Collection[str]) -> str:
    """Return the protected operation that is closest to a deletion."""
    return next((one for one in (DELETE, EVICT, *sorted(operations)) if one in operations), DELETE)


VIEWS = (
    KindView(
        resource=POD_UNAVAILABLE_BUDGET,
        summary=summary,
        related=_related,
        concerns=_concerns,
        plays_along=True,
        about_pod=_about_pod,
    ),
)
