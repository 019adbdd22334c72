"""Orders the pods that wait for an update: priority and scatter strategies (common.md §11).

All of them rearrange a list in default order, again in every pass.
"""

from collections.abc import Callable, Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.numbers import integer
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import PriorityStrategy, ScatterTerm, WeightTerm
from flotilla_common.workload.lifecycle import PREPARING_UPDATE
from flotilla_common.workload.predicates import default_order_key

_DIGITS = "0123456789"
_MAX_ORDER = 2**63 - 1  # the reference's limit; a larger number counts as 0


def update_order(
    waiting: Sequence[Pod],
    everyone: Sequence[Pod],
    priority: PriorityStrategy | None,
    scatter_terms: Sequence[ScatterTerm],
    staying: Callable[[Pod], bool] = lambda _: False,
) -> list[Pod]:
    """Return the waiting pods in update order: default order, then all strategies.

    Pods that cannot go yet (`staying`) come last in the default order: if chosen first, they would block all others.
    """
    ordered = sorted(waiting, key=lambda pod: (staying(pod), default_order_key(pod)))
    ordered = sort_by_priority(ordered, priority)
    return preparing_update_first(scatter(ordered, everyone, scatter_terms))


def sort_by_priority(pods: Sequence[Pod], strategy: PriorityStrategy | None) -> list[Pod]:
    """Sort by urgency, keeping the order of equals (§11.1). Terms that admission would refuse match nothing."""
    if strategy is None:
        return list(pods)
    if strategy.weight_priority:
        terms = [(_compiled(term), term.weight) for term in strategy.weight_priority]
        return sorted(pods, key=lambda pod: -_weight(pod, terms))
    if strategy.order_priority:
        keys = [term.ordered_key for term in strategy.order_priority]
        return sorted(pods, key=lambda pod: _level(pod, keys))
    return list(pods)


def preparing_update_first(pods: Sequence[Pod]) -> list[Pod]:
    """Move pods in PreparingUpdate to the front (§11.3)."""
    return sorted(pods, key=lambda pod: pod.state != PREPARING_UPDATE)


def scatter(waiting: Sequence[Pod], everyone: Sequence[Pod], terms: Sequence[ScatterTerm]) -> list[Pod]:
    """Spread pods with the terms' labels over the order (§11.2); `everyone` are all pods of the workload."""
    ordered = list(waiting)
    if len(terms) > 1:
        counted = [(sum(_carries(pod, term) for pod in waiting), term) for term in terms]
        terms = [term for count, term in sorted(counted, key=lambda pair: -pair[0]) if count]
    for term in terms:
        ordered = _scatter_one(ordered, everyone, term)
    return ordered


def _compiled(term: WeightTerm) -> Selector | None:
    try:
        return Selector.compile(term.match_selector)
    except ValueError:
        return None  # written past admission; the pods still have to be updated in some order


def _weight(pod: Pod, terms: Sequence[tuple[Selector | None, int]]) -> int:
    labels = pod.metadata.labels
    return sum(weight for selector, weight in terms if selector is not None and selector.matches(labels))


def _level(pod: Pod, keys: Sequence[str]) -> tuple[int, int]:
    """Return the index of the first key that the pod has, and minus its number; -1 without any: before all others."""
    for level, key in enumerate(keys):
        value = pod.metadata.labels.get(key)
        if value is not None:
            return level, -_trailing_number(value)
    return -1, 0


def _trailing_number(value: str) -> int:
    digits = value[len(value.rstrip(_DIGITS)) :]
    number = integer(digits.lstrip("0")) or 0
    return number if number <= _MAX_ORDER else 0


def _carries(pod: Pod, term: ScatterTerm) -> bool:
    return pod.metadata.labels.get(term.key) == term.value


def _scatter_one(waiting: list[Pod], everyone: Sequence[Pod], term: ScatterTerm) -> list[Pod]:
    matched = [pod for pod in waiting if _carries(pod, term)]
    unmatched = [pod for pod in waiting if not _carries(pod, term)]
    if len(matched) <= 1 or len(unmatched) <= 1:
        return waiting
    all_matched = sum(_carries(pod, term) for pod in everyone)
    last = matched.pop()  # kept for the very end, so that the feature is seen at both ends of the rollout
    sizes, count, rest = _groups(len(matched), len(unmatched), all_matched - 1, len(everyone) - all_matched)
    of_matched, of_unmatched = sizes
    ordered = unmatched[:rest]
    for group in range(count):
        ordered += matched[group * of_matched : (group + 1) * of_matched]
        ordered += unmatched[rest + group * of_unmatched : rest + (group + 1) * of_unmatched]
    ordered += matched[count * of_matched :]
    ordered += unmatched[rest + count * of_unmatched :]
    return [*ordered, last]


def _groups(matched: int, unmatched: int, all_matched: int, all_unmatched: int) -> tuple[tuple[int, int], int, int]:
    """Return the group sizes of matched and unmatched, the number of groups, and how many unmatched go first.

    When more of the unmatched are done than of the matched, the waiting pods are spread as they are; otherwise the
    proportion of the whole workload is kept, and the surplus of the unmatched goes first.
    """
    if all_unmatched * matched >= unmatched * all_matched:
        count = min(matched, unmatched)
        return _sizes(matched, unmatched, count), count, 0
    sizes = _sizes(all_matched, all_unmatched, min(all_matched, all_unmatched))
    count = min(matched // sizes[0], unmatched // sizes[1])
    return sizes, count, unmatched - count * sizes[1]


def _sizes(matched: int, unmatched: int, count: int) -> tuple[int, int]:
    return _rounded(matched, count), _rounded(unmatched, count)


def _rounded(number: int, parts: int) -> int:
    """Divide and round half up."""
    return (2 * number + parts) // (2 * parts)
