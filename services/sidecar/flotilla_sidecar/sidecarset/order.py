"""In which order pods are updated (sidecarset.md §7.8)."""

from collections.abc import Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.sidecarset.types import SidecarSetUpdateStrategy
from flotilla_common.api.rollout import ScatterTerm
from flotilla_common.workload.ordering import scatter, sort_by_priority
from flotilla_common.workload.predicates import default_order_key

ANY_VALUE = "*"
"""As the value of a scatter term: each value that pods have."""


def update_order(waiting: Sequence[Pod], everyone: Sequence[Pod], strategy: SidecarSetUpdateStrategy) -> list[Pod]:
    """The waiting ones of all its pods: those in need first, then by priority, then spread over their labels."""
    ordered = sort_by_priority(sorted(waiting, key=default_order_key), strategy.priority_strategy)
    return scatter(ordered, everyone, expanded(strategy.scatter_strategy, everyone))


def expanded(terms: Sequence[ScatterTerm], everyone: Sequence[Pod]) -> list[ScatterTerm]:
    """The terms with those for any value replaced by one per value, in the order of the pods."""
    found: list[ScatterTerm] = []
    for term in terms:
        if term.value != ANY_VALUE:
            found.append(term)
            continue
        values = (pod.metadata.labels.get(term.key) for pod in everyone)
        found += [ScatterTerm(key=term.key, value=value) for value in dict.fromkeys(values) if value is not None]
    return list({(term.key, term.value): term for term in found}.values())
