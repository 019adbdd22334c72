"""The rules of the pod check for PodUnavailableBudgets, in CEL: they select the pods that a budget may protect.

The apiserver does not call the webhook for pods that no budget protects (podunavailablebudget.md §8.4): pods that are
not ready, are terminating, or have the annotation that exempts them; nor for requests of the namespace controller. So
these requests succeed even while all webhooks are down.
"""

from collections.abc import Collection, Iterable

from flotilla_common.api.kinds.podunavailablebudget.types import (
    LEGACY_RELATED_BUDGET,
    NOT_PROTECTED,
    RELATED_BUDGET,
    UNAVAILABLE,
    BudgetSpec,
)
from flotilla_common.api.kinds.workloadspread.targets import DEPLOYMENTS, REPLICA_SETS
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.podrules import PodRule, controlled_by, labels_match, one_of, quoted
from flotilla_common.workload.budget import TRUE_TEXTS

NAMESPACE_CONTROLLER = "system:serviceaccount:kube-system:namespace-controller"
"""The user that deletes the content of a namespace that is being deleted."""

_WHY = "PodUnavailableBudgets"
_KEYS = (RELATED_BUDGET, LEGACY_RELATED_BUDGET)


def removal_rule(namespace: str, names: Collection[str] = ()) -> PodRule:
    """Return the rule of pods of a namespace that are deleted or evicted.

    `names` are its budgets, none if they are too many to name.
    """
    other_user = f"request.userInfo.username != {quoted(NAMESPACE_CONTROLLER)}"
    return PodRule(_WHY, f"{other_user} && {_is_protected(names)}", namespace)


def updated_rule(namespace: str, names: Collection[str] = ()) -> PodRule:
    """Return the rule of pods of a namespace whose update may disrupt them."""
    still = f"has(object.metadata.annotations) && {_named('object', ())}"
    changed = f"object.spec != oldObject.spec || {_has_unavailable_label('object')}"
    return PodRule(_WHY, f"{_is_protected(names)} && {still} && ({changed})", namespace, updates=True)


def created_rule(namespace: str, spec: BudgetSpec) -> PodRule | None:
    """Return the rule of new pods that the budget selects, or None if it selects none."""
    if spec.selector is not None and spec.selector != LabelSelector():
        return PodRule(_WHY, labels_match(spec.selector), namespace)
    if spec.target_ref is None:
        return None
    kind = spec.target_ref.identity[:2]
    owner, names = (REPLICA_SETS, None) if kind == DEPLOYMENTS else (kind, {kind: spec.target_ref.name})
    return PodRule(_WHY, controlled_by([owner], names), namespace)


def _is_protected(names: Collection[str]) -> str:
    """Return the condition that the stored pod is ready, and names a budget."""
    return " && ".join(
        (
            "has(oldObject.metadata.annotations)",
            _named("oldObject", names),
            f"!({_text_in('oldObject', NOT_PROTECTED, sorted(TRUE_TEXTS))})",
            "!has(oldObject.metadata.deletionTimestamp)",
            f"!({_has_unavailable_label('oldObject')})",
            "has(oldObject.status) && has(oldObject.status.phase) && oldObject.status.phase == 'Running'",
            "has(oldObject.status.conditions)",
            "oldObject.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        )
    )


def _named(pod: str, names: Collection[str]) -> str:
    """Return the condition that the pod names one of the budgets, or any."""
    if names:
        return f"({' || '.join(_text_in(pod, key, sorted(names)) for key in _KEYS)})"
    return f"({' || '.join(f'{quoted(key)} in {pod}.metadata.annotations' for key in _KEYS)})"


def _text_in(pod: str, key: str, values: Iterable[str]) -> str:
    annotations = f"{pod}.metadata.annotations"
    return f"({quoted(key)} in {annotations} && {annotations}[{quoted(key)}] in {one_of(values)})"


def _has_unavailable_label(pod: str) -> str:
    labels = f"{pod}.metadata.labels"
    return f"has({labels}) && {labels}.exists(k, k.startsWith({quoted(UNAVAILABLE)}))"
