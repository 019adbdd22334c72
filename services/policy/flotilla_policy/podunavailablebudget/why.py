"""Explains a PodUnavailableBudget: its counts, the pods that hold units, and the pods that do not serve."""

from collections.abc import Sequence
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import DISRUPTED_SECONDS, UNAVAILABLE_SECONDS, BudgetStatus
from flotilla_common.api.meta import later, rfc3339
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import NAMED, first_names, named, pods_word
from flotilla_common.workload.budget import (
    is_ready,
    is_recorded,
    is_unavailable_by_label,
    protected_replicas,
    related_budget,
)
from flotilla_policy.podunavailablebudget.lookups import UNKNOWN
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot, serves


def give_reasons(snapshot: BudgetSnapshot, status: BudgetStatus, builder: PlanBuilder) -> None:
    """Add reasons that explain the status. `status`: as written."""
    _explain_budget(status, builder, snapshot)
    _explain_entries(status, builder)
    _explain_unavailable(snapshot, status, builder)
    _explain_missing(snapshot, builder)
    _explain_expected(snapshot, builder)
    _explain_other_budgets(snapshot, builder)


def _explain_budget(status: BudgetStatus, builder: PlanBuilder, snapshot: BudgetSnapshot) -> None:
    counts = f"{status.current_available} of {pods_word(status.total_replicas)} available"
    if not snapshot.pods:
        builder.reason(State.WAITING, "NoPods", "there are no pods that it protects")
    elif status.desired_available == 0:
        builder.reason(State.DONE, "NothingProtected", f"no pod must be available: {counts}")
    elif status.unavailable_allowed > 0:
        left = f"{status.unavailable_allowed} more may become unavailable"
        builder.reason(State.DONE, "BudgetLeft", f"{left}: {counts}, {status.desired_available} required")
    else:
        text = f"no budget is left: {counts}, {status.desired_available} required"
        builder.reason(State.WAITING, "BudgetUsedUp", text)


def _explain_entries(status: BudgetStatus, builder: PlanBuilder) -> None:
    taken = [(later(at, DISRUPTED_SECONDS), name, "being deleted") for name, at in status.disruptions.items()]
    taken += [(later(at, UNAVAILABLE_SECONDS), name, "being updated") for name, at in status.unavailable_pods.items()]
    if ahead := status.units_ahead:
        text = f"the webhook has reserved {ahead} more for current requests, until they are used or returned"
        builder.reason(State.NOTE, "BudgetTakenAhead", text)
    if not taken:
        return
    taken.sort()
    shown = ", ".join(f"{name} ({_until(at, what)})" for at, name, what in taken[:NAMED])
    more = f" and {len(taken) - NAMED} more" if len(taken) > NAMED else ""
    builder.reason(State.NOTE, "BudgetHeld", f"it is used by {shown}{more}", [name for _, name, _ in taken])


def _until(at: datetime, what: str) -> str:
    return f"{what}, until {rfc3339(at)} at most"


def _explain_unavailable(snapshot: BudgetSnapshot, status: BudgetStatus, builder: PlanBuilder) -> None:
    there = (*snapshot.terminating, *snapshot.pods)
    idle = [pod for pod in there if not serves(pod, snapshot.gates) and not is_recorded(status, pod)]
    if idle:
        idle.sort(key=_first_to_end)
        shown = ", ".join(f"{name} ({_why_not(pod)})" for name, pod in zip(first_names(idle), idle, strict=False))
        more = f" and {len(idle) - NAMED} more" if len(idle) > NAMED else ""
        builder.reason(State.NOTE, "PodsUnavailable", f"{pods_word(len(idle))} unavailable: {shown}{more}", idle)


def _first_to_end(pod: Pod) -> tuple[bool, str, str]:
    """Return a key that sorts terminating pods first, by their ends, and the others by name."""
    end = pod.metadata.deletion_timestamp
    return end is None, "" if end is None else rfc3339(end), pod.metadata.name


def _explain_missing(snapshot: BudgetSnapshot, builder: PlanBuilder) -> None:
    missing = snapshot.expected - len(snapshot.pods) - len(snapshot.terminating)
    if missing > 0:
        verb = "does" if missing == 1 else "do"
        builder.reason(State.NOTE, "PodsMissing", f"{missing} of {pods_word(snapshot.expected)} {verb} not exist")


def _explain_expected(snapshot: BudgetSnapshot, builder: PlanBuilder) -> None:
    expected, workloads = pods_word(snapshot.expected), snapshot.workloads
    if protected_replicas(snapshot.budget) == snapshot.expected:
        builder.reason(State.NOTE, "ExpectedByBudget", f"{expected} expected, set by protectTotalReplicas")
    elif workloads:
        shown = ", ".join(f"{one.kind} {one.name} ({one.replicas})" for one in workloads[:NAMED])
        more = f" and {len(workloads) - NAMED} more" if len(workloads) > NAMED else ""
        builder.reason(State.NOTE, "ExpectedByWorkloads", f"{expected} expected: {shown}{more}", _names(snapshot))
    elif (target := snapshot.budget.spec.target_ref) is not None:
        builder.reason(State.NOTE, "NoTarget", f"{target.kind} {target.name} does not exist")
    unknown = [one for one in workloads if one.replicas == UNKNOWN]
    if unknown:
        text = f"{unknown[0].kind} {unknown[0].name} does not specify its number of pods: set protectTotalReplicas"
        builder.reason(State.STUCK, "ReplicasUnknown", text)


def _names(snapshot: BudgetSnapshot) -> Sequence[str]:
    return [one.name for one in snapshot.workloads]


def _explain_other_budgets(snapshot: BudgetSnapshot, builder: PlanBuilder) -> None:
    """Add a note about pods that another budget protects because it marked them first."""
    elsewhere: list[Pod] = [pod for pod in snapshot.pods if _names_another(snapshot, pod)]
    if elsewhere:
        text = f"{pods_word(len(elsewhere))} counted, and protected by another budget: {named(elsewhere)}"
        builder.reason(State.NOTE, "OtherBudget", text, elsewhere)


def _names_another(snapshot: BudgetSnapshot, pod: Pod) -> bool:
    name = related_budget(pod.metadata)
    return bool(name) and name != snapshot.budget.metadata.name and name not in snapshot.missing_budgets


def _why_not(pod: Pod) -> str:
    """Describe why the pod does not serve, and until or since when."""
    end = pod.metadata.deletion_timestamp
    if end is not None:
        return f"terminating, due to end by {rfc3339(end)}"
    if is_unavailable_by_label(pod.metadata.labels):
        return "unavailable by a label"
    if is_ready(pod):
        return "being updated in place"
    condition = pod.conditions.get("Ready")
    since = None if condition is None else condition.last_transition_time
    return "not ready" if since is None else f"not ready since {rfc3339(since)}"
