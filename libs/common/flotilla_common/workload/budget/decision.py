"""Decides whether a request needs budget (podunavailablebudget.md §8.4), by fields of budgets and pods."""

from enum import Enum

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import (
    BY_DEFAULT,
    LEGACY_RELATED_BUDGET,
    NOT_PROTECTED,
    PROTECTED_OPERATIONS,
    PROTECTED_REPLICAS,
    RELATED_BUDGET,
    RESIZE,
    UPDATE,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import LabelSelector, ObjectMeta
from flotilla_common.api.numbers import whole_number
from flotilla_common.api.selectors import Selector
from flotilla_common.gates import Gates
from flotilla_common.workload.budget.availability import is_consistent, is_ready
from flotilla_common.workload.budget.taking import has_taken

RESIZE_GATE = "InPlacePodVerticalScaling"
"""The gate that distinguishes resizes from updates."""

TRUE_TEXTS = frozenset({"1", "t", "T", "TRUE", "true", "True"})
"""The values of an annotation that mean true."""


class Pass(Enum):
    """The reason why a request needs no budget."""

    EXEMPT = "the pod says that no budget protects it"
    NOT_READY = "the pod is not ready"
    INCONSISTENT = "the pod does not run yet what its spec says"
    NO_BUDGET = "the budget does not exist"
    IGNORED = "the budget ignores the pod"
    NOTHING_DESIRED = "no pod has to be available"
    NOT_PROTECTED = "the budget does not protect pods from this operation"
    RECORDED = "the budget was taken for the pod already"
    JUST_RECORDED = "the budget was taken for the pod a moment ago"


def related_budget(pod: ObjectMeta) -> str:
    """Return the name of the budget that protects the pod, by its annotations; empty if there is none."""
    return pod.annotations.get(RELATED_BUDGET) or pod.annotations.get(LEGACY_RELATED_BUDGET, "")


def is_exempt(pod: ObjectMeta) -> bool:
    """Return whether an annotation exempts the pod from budgets."""
    return pod.annotations.get(NOT_PROTECTED) in TRUE_TEXTS


def protected_operations(budget: PodUnavailableBudget, gates: Gates) -> frozenset[str]:
    """Return the operations that the budget protects pods from (§3.3, §8.5)."""
    written = budget.metadata.annotations.get(PROTECTED_OPERATIONS, "").split(",")
    named = budget.spec.protect_operations or [name.strip() for name in written if name.strip()]
    found = frozenset(named) or BY_DEFAULT
    return found | {RESIZE} if UPDATE in found and not gates.on(RESIZE_GATE) else found


def protected_replicas(budget: PodUnavailableBudget) -> int | None:
    """Return the number of pods that the budget itself asks for; None if the workloads' number applies (§3.3)."""
    if budget.spec.protect_total_replicas is not None:
        return budget.spec.protect_total_replicas
    try:
        return whole_number(budget.metadata.annotations.get(PROTECTED_REPLICAS, ""))
    except ValueError:
        return None


def why_free(pod: Pod, budget: PodUnavailableBudget | None, operation: str, gates: Gates) -> Pass | None:
    """Return why the operation on the pod needs no budget; None if it needs one (§8.4).

    `budget` is the one that the pod names, or None if it does not exist. Raises ValueError when the selector of ignored
    pods is invalid.
    """
    if is_exempt(pod.metadata):
        return Pass.EXEMPT
    if not is_ready(pod):
        return Pass.NOT_READY
    if not is_consistent(pod, gates):
        return Pass.INCONSISTENT
    return Pass.NO_BUDGET if budget is None else _why_budget_lets_pass(pod, budget, operation, gates)


def _why_budget_lets_pass(pod: Pod, budget: PodUnavailableBudget, operation: str, gates: Gates) -> Pass | None:
    if _matches(budget.spec.ignored_pod_selector, pod):
        return Pass.IGNORED
    if budget.status.desired_available == 0:
        return Pass.NOTHING_DESIRED
    if operation not in protected_operations(budget, gates):
        return Pass.NOT_PROTECTED
    return Pass.RECORDED if has_taken(budget.status, pod) else None


def _matches(selector: LabelSelector | None, pod: Pod) -> bool:
    """Return whether the selector selects the pod; an empty selector selects nothing. Raises ValueError."""
    if selector is None or selector == LabelSelector():
        return False
    return Selector.compile(selector).matches(pod.metadata.labels)
