"""CloneSet: its revisions and pods."""

import msgspec

from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet, RollingUpdate
from flotilla_common.api.workload import Lifecycle
from flotilla_common.workload.revision_codec import belongs
from flotilla_insight.views.kindview import KindView
from flotilla_insight.views.progress import numbers_of_pods, progress_of_pods
from flotilla_insight.workload import Workload


def clone_set(raw: bytes | msgspec.Raw) -> Workload:
    """Read a CloneSet as a workload."""
    cloneset = msgspec.json.decode(raw, type=CloneSet)
    spec, status = cloneset.spec, cloneset.status
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    return Workload(
        kind=CLONE_SET.kind,
        metadata=cloneset.metadata,
        selector=spec.selector,
        lifecycle=spec.lifecycle or Lifecycle(),
        numbers=numbers_of_pods(spec.replicas, status, status.expected_updated_replicas),
        observed_generation=status.observed_generation,
        update_revision=status.update_revision,
        current_revision=status.current_revision,
        partition=rolling.partition or 0,
        paused=rolling.paused,
        on_delete=spec.update_strategy.type == "OnDelete",
        min_ready_seconds=spec.min_ready_seconds,
        belongs=belongs,
    )


VIEWS = (
    KindView(
        resource=CLONE_SET,
        workload=clone_set,
        has_unknown_name=lambda made: made.has_new_instance,  # the ids depend on its next version
        progress=progress_of_pods,
        guards_removal=True,
    ),
)
