"""The metrics of WorkloadSpreads."""

from collections.abc import Iterator

from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD, WorkloadSpread
from flotilla_statemetrics.families import Family, Series, StateKind, created, generation, object_labels, word

FIXED = "Fixed"
"""The schedule strategy of a WorkloadSpread that sets none."""


def _replicas(spread: WorkloadSpread) -> Iterator[Series]:
    for subset in spread.status.subset_statuses:
        yield (("subset", subset.name),), subset.replicas


def _missing(spread: WorkloadSpread) -> Iterator[Series]:
    for subset in spread.status.subset_statuses:
        yield (("subset", subset.name),), subset.missing_replicas


def _max_replicas(spread: WorkloadSpread) -> Iterator[Series]:
    """Yield the limits that are numbers. A percentage depends on the workload, which is not read here."""
    for subset in spread.spec.subsets:
        if isinstance(subset.max_replicas, int):
            yield (("subset", subset.name),), subset.max_replicas


WORKLOAD_SPREADS = StateKind(
    resource=WORKLOAD_SPREAD,
    type=WorkloadSpread,
    labels=("workloadspread",),
    families=(
        created("kruise_workloadspread_created"),
        object_labels("kruise_workloadspread_labels"),
        generation("kruise_workloadspread_spec_metadata_generation"),
        Family(
            "kruise_workloadspread_spec_subsets_max_replicas", "The largest number of pods of a subset.", _max_replicas
        ),
        word(
            "kruise_workloadspread_spec_strategy_type",
            "Whether pods may move to other subsets.",
            "type",
            lambda one: one.spec.schedule_strategy.type or FIXED,
        ),
        Family("kruise_workloadspread_status_subset_replicas", "Pods of a subset.", _replicas),
        Family(
            "kruise_workloadspread_status_subset_replicas_missing",
            "Places that are left in a subset; -1 where there is no limit.",
            _missing,
        ),
    ),
)
