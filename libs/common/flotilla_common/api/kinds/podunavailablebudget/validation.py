"""Validation of a PodUnavailableBudget, as v1beta1 (podunavailablebudget.md §4)."""

import re
from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import Fault, invalid, not_supported, required
from flotilla_common.api.admission.workload import share_problem
from flotilla_common.api.documents import Json, mapping, sequence
from flotilla_common.api.kinds.podunavailablebudget.types import (
    OPERATIONS,
    PROTECTED_REPLICAS,
    BudgetSpec,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import IntOrString, LabelSelector, LabelSelectorRequirement, TargetRef
from flotilla_common.api.numbers import whole_number
from flotilla_common.api.selectors import selector_problem

_WHICH, _HOW_MANY = "spec.selector, targetRef", "spec.maxUnavailable, minAvailable"
_PERCENT = re.compile(r"0*(100|[0-9]{1,2})%")
_API_VERSION = re.compile(r"[^/]+(/[^/]+)?")

_COMPATIBLE_OPERATORS = {
    "Exists": {"In", "NotIn", "Exists"},
    "NotIn": {"Exists", "DoesNotExist", "NotIn"},
    "DoesNotExist": {"DoesNotExist", "NotIn"},
}
"""The operators that each operator is compatible with, for any values."""


def validate(
    document: Json,
    budget: PodUnavailableBudget,
    old: PodUnavailableBudget | None,
    others: Iterable[PodUnavailableBudget],
) -> list[Fault]:
    """Return all faults of a budget.

    `document`: the budget as it was sent, to show values; `old`: the stored object of an update; `others`: the budgets
    of the namespace under other names.
    """
    raw, spec = mapping(document.get("spec")), budget.spec
    faults = [
        *_replicas_faults(budget),
        *_subject_faults(raw, spec),
        *_limit_faults(spec),
        *_operation_faults(raw),
        *_selector_faults("spec.ignoredPodSelector", raw, spec.ignored_pod_selector),
    ]
    if old is not None and (spec.selector, spec.target_ref) != (old.spec.selector, old.spec.target_ref):
        faults.append(required(_WHICH, "selector, targetRef cannot be modified"))
    return [*faults, *_conflict_faults(raw, spec, others)]


def _replicas_faults(budget: PodUnavailableBudget) -> Iterator[Fault]:
    written, field = budget.metadata.annotations.get(PROTECTED_REPLICAS), budget.spec.protect_total_replicas
    path = f"metadata.annotations[{PROTECTED_REPLICAS}]"
    if written is None:
        return
    try:
        whole_number(written)
    except ValueError:
        yield invalid(path, written, "must be a valid int32")
        return
    if field is not None and written != str(field):
        yield invalid(path, written, "must match spec.protectTotalReplicas when both are set")


def _subject_faults(raw: Json, spec: BudgetSpec) -> Iterator[Fault]:
    """Yield the faults of the fields that select the protected pods."""
    if spec.selector is None and spec.target_ref is None:
        yield required(_WHICH, "no selector or targetRef defined in PodUnavailableBudget")
    elif spec.selector is not None and spec.target_ref is not None:
        yield required(_WHICH, "selector and targetRef are mutually exclusive")
    elif spec.target_ref is not None:
        yield from _target_faults(mapping(raw.get("targetRef")), spec.target_ref)
    else:
        yield from _selector_faults("spec.selector", raw, spec.selector)


def _target_faults(raw: Json, target: TargetRef) -> Iterator[Fault]:
    if not (target.api_version and target.kind and target.name):
        yield invalid("spec.targetRef", raw, "empty targetRef is not valid for PodUnavailableBudget")
    if target.api_version and not _API_VERSION.fullmatch(target.api_version):
        yield invalid("spec.targetRef", raw, f"unexpected GroupVersion string: {target.api_version}")


def _selector_faults(path: str, raw: Json, selector: LabelSelector | None) -> Iterator[Fault]:
    if selector is None:
        return
    shown = mapping(raw.get(path.removeprefix("spec.")))
    if not selector.match_labels and not selector.match_expressions:
        yield invalid(path, shown, "empty selector is not valid for PodUnavailableBudget")
    elif problem := selector_problem(selector):
        yield invalid(path, shown, problem)


def _limit_faults(spec: BudgetSpec) -> Iterator[Fault]:
    if spec.max_unavailable is None and spec.min_available is None:
        yield required(_HOW_MANY, "no maxUnavailable or minAvailable defined in PodUnavailableBudget")
    elif spec.max_unavailable is not None and spec.min_available is not None:
        yield required(_HOW_MANY, "maxUnavailable and minAvailable are mutually exclusive")
    for name, limit in (("maxUnavailable", spec.max_unavailable), ("minAvailable", spec.min_available)):
        if limit is not None and (problem := _limit_problem(limit)):
            yield invalid(f"spec.{name}", limit, problem)


def _limit_problem(limit: IntOrString) -> str:
    within = isinstance(limit, int) or _PERCENT.fullmatch(limit)
    return share_problem(limit) or ("" if within else "must not be greater than 100%")


def _operation_faults(raw: Json) -> Iterator[Fault]:
    for index, operation in enumerate(sequence(raw.get("protectOperations"))):
        if operation not in OPERATIONS:
            yield not_supported(f"spec.protectOperations[{index}]", operation, OPERATIONS)


def _conflict_faults(raw: Json, spec: BudgetSpec, others: Iterable[PodUnavailableBudget]) -> Iterator[Fault]:
    """Yield the fault of the first other budget that protects the same workload, or the same pods."""
    for other in others:
        target, theirs = spec.target_ref, other.spec.target_ref
        if target is not None and theirs is not None and target.identity == theirs.identity:
            detail = f"pub.spec.targetReference is in conflict with other PodUnavailableBudget {other.metadata.name}"
            yield invalid("spec.targetReference", mapping(raw.get("targetRef")), detail)
            return
        one, another = spec.selector, other.spec.selector
        if one is not None and another is not None and loosely_overlap(one, another):
            detail = f"pub.spec.selector is in conflict with other PodUnavailableBudget {other.metadata.name}"
            yield invalid("spec.selector", mapping(raw.get("selector")), detail)
            return


def loosely_overlap(one: LabelSelector, other: LabelSelector) -> bool:
    """Report whether both selectors require the same labels, and a value can satisfy both for each label.

    Selectors that require different labels count as different, even if a pod could match both (§4, "Loose overlap").
    """
    terms, others = _by_key(one), _by_key(other)
    return terms.keys() == others.keys() and all(_compatible(term, others[key]) for key, term in terms.items())


def _by_key(selector: LabelSelector) -> dict[str, LabelSelectorRequirement]:
    """Return one requirement for each key: the pair of matchLabels if there is one, else the last expression."""
    pairs = selector.match_labels.items()
    equal = {key: LabelSelectorRequirement(key=key, operator="In", values=[value]) for key, value in pairs}
    return {one.key: one for one in selector.match_expressions} | equal


def _compatible(one: LabelSelectorRequirement, other: LabelSelectorRequirement) -> bool:
    """Report whether some value satisfies both requirements; their order does not matter."""
    match one.operator, other.operator:
        case "In", "In":
            return not set(one.values).isdisjoint(other.values)
        case "In", "Exists":
            return True
        case "In", "NotIn":
            return not set(one.values) <= set(other.values)
        case "NotIn", "In":
            return not set(other.values) <= set(one.values)
        case first, second:
            return second in _COMPATIBLE_OPERATORS.get(first, ())
