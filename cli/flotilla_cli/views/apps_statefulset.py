"""StatefulSet of Kubernetes: its revisions and pods, by ordinal."""

from flotilla_cli.tree.workload import Workload
from flotilla_cli.views.built_in import BuiltIn, RollingUpdate, reading
from flotilla_cli.views.kindview import KindView
from flotilla_cli.views.statefulset import by_ordinal
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET


def stateful_set(raw: bytes) -> Workload:
    """Read a StatefulSet as a workload."""
    found = BuiltIn.of(raw)
    strategy = found.spec.update_strategy
    partition = (strategy.rolling_update or RollingUpdate()).partition
    return Workload(
        kind=BUILT_IN_STATEFUL_SET.kind,
        metadata=found.metadata,
        selector=found.spec.selector,
        numbers=found.numbers(partition),
        observed_generation=found.status.observed_generation,
        update_revision=found.status.update_revision,
        current_revision=found.status.current_revision,
        partition=partition,
        on_delete=strategy.type == "OnDelete",
        min_ready_seconds=found.spec.min_ready_seconds,
        order=by_ordinal,
    )


VIEW = KindView(
    resource=BUILT_IN_STATEFUL_SET,
    workload=stateful_set,
    related=reading(BUILT_IN_STATEFUL_SET.kind),
)
