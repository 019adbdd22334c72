"""Plans one pass over one PodUnavailableBudget: marks its pods and recounts its status.

See podunavailablebudget.md §7. All takers of budget write the same status. So it is written on exactly the version from
which it was counted, so that no unit that was taken meanwhile is lost.
"""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.podunavailablebudget.types import (
    LEGACY_RELATED_BUDGET,
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
    BudgetSpec,
    BudgetStatus,
    PodUnavailableBudget,
)
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Event, Intent, ObjectRef, Patch, PatchType, Plan, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.writes import patch_of, write_status
from flotilla_common.workload.budget import changes_of, is_recorded, related_budget, status_document
from flotilla_policy.podunavailablebudget.entries import Entries, keep_entries
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot, serves
from flotilla_policy.podunavailablebudget.why import give_reasons

_ASKING = "asking"
"""The key of a note: the previous pass waited for an answer."""
_NO_PODS = Event("NoPods", "No matching pods found")
_NUMBERS = ("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas")


def plan(snapshot: BudgetSnapshot, now: datetime) -> Plan:
    """Plan one pass."""
    builder = PlanBuilder()
    builder.deadlines.until(snapshot.next_read)
    if snapshot.pending:
        return _pending(snapshot, builder)
    try:
        desired = _desired(snapshot)
    except ValueError as fault:
        return _failed(snapshot, builder, str(fault))
    if not snapshot.pods:
        builder.tell_once(_NO_PODS, snapshot.notes)
    builder.stage(list(_stampings(snapshot)))
    entries = keep_entries(snapshot, now, builder.deadlines)
    builder.events += [_not_deleted(snapshot.budget, pod) for pod in entries.not_deleted]
    after = _status(snapshot, desired, entries)
    give_reasons(snapshot, after, builder)
    patch = _write(snapshot.budget, after)
    return builder.plan(
        status=patch,
        status_after_success=True,  # a pod is protected only once it names the budget
        urgent_status=_is_urgent(snapshot.budget.status, after),
        numbers=_numbers(after),
    )


def _pending(snapshot: BudgetSnapshot, builder: PlanBuilder) -> Plan:
    """Return the plan of a budget about which the apiserver must be asked first.

    It gets a reason only from the second pass on: nearly always the next pass has the answer.
    """
    builder.notes |= {**snapshot.notes, _ASKING: snapshot.pending}
    if _ASKING in snapshot.notes:
        builder.reason(State.WAITING, "AskingApiserver", f"asking the apiserver about {snapshot.pending}")
    return builder.plan()


def _failed(snapshot: BudgetSnapshot, builder: PlanBuilder, fault: str) -> Plan:
    """Return the plan of a budget that cannot be counted: its status stays as it is."""
    message = f"Failed to calculate the number of expected pods: {fault}"
    builder.tell_once(Event("CalculateExpectedPodCountFailed", message, warning=True), snapshot.notes)
    builder.reason(State.STUCK, "CalculateExpectedPodCountFailed", f"the expected number of pods is unknown: {fault}")
    builder.errors.append(("count", fault))
    return builder.plan()


def _desired(snapshot: BudgetSnapshot) -> int:
    """Return how many pods must be available. Raises ValueError."""
    if snapshot.fault:
        raise ValueError(snapshot.fault)
    return max(0, _least(snapshot.budget.spec, snapshot.expected))


def _least(spec: BudgetSpec, expected: int) -> int:
    if spec.max_unavailable is not None:
        return expected - strict_value(spec.max_unavailable, expected, round_up=True)
    if spec.min_available is not None:
        return strict_value(spec.min_available, expected, round_up=True)
    raise ValueError("neither maxUnavailable nor minAvailable is set")


def _stampings(snapshot: BudgetSnapshot) -> Iterator[Chain]:
    """Yield the writes that mark pods with the budget's name, if they name no existing budget."""
    name = snapshot.budget.metadata.name
    nameless = [pod for pod in snapshot.pods if related_budget(pod.metadata) in ("", *snapshot.missing_budgets)]
    body: Json = {"metadata": {"annotations": {RELATED_BUDGET: name, LEGACY_RELATED_BUDGET: name}}}
    for pod in nameless[:MAX_CHAINS_PER_PASS]:
        cause = f"PodUnavailableBudget {name} protects the pod"
        yield (patch_of(POD, pod.metadata, Intent.UPDATE, cause, body=body, patch_type=PatchType.STRATEGIC),)


def _status(snapshot: BudgetSnapshot, desired: int, entries: Entries) -> BudgetStatus:
    budget = snapshot.budget
    kept = msgspec.structs.replace(
        budget.status, disrupted_pods=entries.disrupted, unavailable_pods=entries.unavailable
    )
    available = sum(serves(pod, snapshot.gates) and not is_recorded(kept, pod) for pod in snapshot.pods)
    return msgspec.structs.replace(
        kept,
        observed_generation=budget.metadata.generation,
        unavailable_allowed=max(0, available - desired - kept.units_ahead),
        current_available=available,
        desired_available=desired,
        total_replicas=snapshot.expected,
    )


def _write(budget: PodUnavailableBudget, after: BudgetStatus) -> Patch | None:
    """Return the write of the status; None if nothing differs.

    It always holds the four numbers, since the first write has to set them.
    """
    changes = changes_of(budget.status, after)
    if not changes:
        return None
    document = status_document(after)
    changes |= {name: document[name] for name in _NUMBERS}
    return write_status(POD_UNAVAILABLE_BUDGET, budget.metadata, changes)


def _is_urgent(before: BudgetStatus, after: BudgetStatus) -> bool:
    """Report whether requests may be decided wrongly, or with a wrong message, until the status is written.

    An increase of budget can wait for the next write while at least half of it is there; so can more available pods if
    no budget is left, before and after.
    """
    left = before.unavailable_allowed
    is_short = left == after.unavailable_allowed == 0
    is_nearer = is_short and before.current_available <= after.current_available
    grows = is_nearer or 0 < left <= after.unavailable_allowed <= 2 * left
    same = (before.observed_generation, before.desired_available, before.total_replicas) == (
        after.observed_generation,
        after.desired_available,
        after.total_replicas,
    )
    return not (grows and same)


def _not_deleted(budget: PodUnavailableBudget, pod: Pod) -> Event:
    namespace, name = budget.metadata.key
    message = f"Pod was expected by PUB {namespace}/{name} to be deleted but it wasn't"
    return Event("NotDeleted", message, warning=True, about=ObjectRef.of(POD, pod.metadata))


def _numbers(status: BudgetStatus) -> dict[str, int]:
    return {
        "expected": status.total_replicas,
        "desired": status.desired_available,
        "available": status.current_available,
        "allowed": status.unavailable_allowed,
        "disrupted": len(status.disruptions),
        "ahead": status.units_ahead,
        "updating": len(status.unavailable_pods),
    }
