"""Decides whether a request needs budget, by fields of budgets and pods (podunavailablebudget.md §8.3, §8.4).

An update of a pod is nothing, an update, or a resize. Any difference of the specs counts, also in members that our
types leave out. So raw documents are compared.
"""

from enum import Enum

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text
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
from flotilla_common.workload.budget.availability import is_consistent, is_ready, is_unavailable_by_label
from flotilla_common.workload.budget.taking import has_taken
from flotilla_common.workload.inplace.calculate import qos_class

_SOURCE, _FROM_APISERVER = "kubernetes.io/config.source", "api"
_RESIZABLE = frozenset({"cpu", "memory"})
_WITHOUT_RESTART = ("", "NotRequired")


def operation_of_update(before: Json, after: Json) -> str:
    """Return `UPDATE` or `RESIZE`, or an empty text for an update that disrupts nothing.

    `before` and `after` are the documents of the stored pod and of its update.
    """
    if _becomes_unavailable(before, after):
        return UPDATE
    old, new = member(before, "spec"), member(after, "spec")
    if old == new:
        return ""
    return RESIZE if not (_is_static(before) or _is_static(after)) and _is_resize(old, new) else UPDATE


def _becomes_unavailable(before: Json, after: Json) -> bool:
    """Return whether the pod gets its first label that makes it unavailable."""
    return not is_unavailable_by_label(_labels(before)) and is_unavailable_by_label(_labels(after))


def _labels(pod: Json) -> dict[str, str]:
    return strings(member(pod, "metadata").get("labels"))


def _is_static(pod: Json) -> bool:
    source = strings(member(pod, "metadata").get("annotations")).get(_SOURCE)
    return source is not None and source != _FROM_APISERVER


def _is_resize(old: Json, new: Json) -> bool:
    """Return whether only CPU and memory of containers change, without restarts and without another QoS class."""
    if _without_resources(old) != _without_resources(new):
        return False
    try:
        if qos_class(old) != qos_class(new):
            return False
    except ValueError:  # a quantity that cannot be parsed
        return False
    pairs = zip(mappings(old.get("containers")), mappings(new.get("containers")), strict=True)
    return all(_takes_resize(before, after) for before, after in pairs)


def _without_resources(spec: Json) -> Json:
    return spec | {"containers": [container | {"resources": None} for container in mappings(spec.get("containers"))]}


def _takes_resize(before: Json, after: Json) -> bool:
    old, new = member(before, "resources"), member(after, "resources")
    amounts = ("requests", "limits")
    if any(old.get(key) != new.get(key) for key in {*old, *new} - set(amounts)):
        return False
    changed = {name for side in amounts for name in _changed(mapping(old.get(side)), mapping(new.get(side)))}
    restarts = {
        text(policy.get("resourceName"))
        for policy in mappings(after.get("resizePolicy"))
        if text(policy.get("restartPolicy")) not in _WITHOUT_RESTART
    }
    return changed <= _RESIZABLE - restarts


def _changed(old: Json, new: Json) -> set[str]:
    return {name for name in {*old, *new} if old.get(name) != new.get(name)}


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
