"""In which order waiting pods are updated: priority and scatter strategies (common.md §11)."""

from collections.abc import Sequence

from flotilla_common.api.cloneset import PriorityStrategy, ScatterTerm
from flotilla_common.api.core import Pod


def sort_by_priority(pods: Sequence[Pod], strategy: PriorityStrategy | None) -> list[Pod]:
    """The most urgent first; equal ones keep their order (§11.1)."""
    raise NotImplementedError


def scatter(waiting: Sequence[Pod], everyone: Sequence[Pod], terms: Sequence[ScatterTerm]) -> list[Pod]:
    """Spread pods with the terms' labels over the order (§11.2). `everyone`: all pods of the workload."""
    raise NotImplementedError


def preparing_update_first(pods: Sequence[Pod]) -> list[Pod]:
    """Pods in PreparingUpdate to the front, else unchanged (§11.3)."""
    raise NotImplementedError


def update_order(
    waiting: Sequence[Pod],
    everyone: Sequence[Pod],
    priority: PriorityStrategy | None,
    scatter_terms: Sequence[ScatterTerm],
) -> list[Pod]:
    """Waiting pods in the order in which they are to be updated: default order, then all strategies."""
    raise NotImplementedError


def priority_problems(strategy: PriorityStrategy) -> list[str]:
    """Why admission refuses the strategy; empty when it does not."""
    raise NotImplementedError


def scatter_problems(terms: Sequence[ScatterTerm]) -> list[str]:
    """Why admission refuses the terms; empty when it does not."""
    raise NotImplementedError
