"""CloneSet: the tree of its revisions and pods."""

from functools import partial

import msgspec

from flotilla_cli.picture import Opener
from flotilla_cli.tree.live import LiveTree
from flotilla_cli.tree.workload import Numbers, Workload
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet, RollingUpdate
from flotilla_common.workload.recipe import belongs


def clone_set(raw: bytes | msgspec.Raw) -> Workload:
    """What the tree needs to know of a CloneSet."""
    cloneset = msgspec.json.decode(raw, type=CloneSet)
    spec, status = cloneset.spec, cloneset.status
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    return Workload(
        kind=CLONE_SET.kind,
        metadata=cloneset.metadata,
        numbers=Numbers(
            desired=spec.replicas,
            total=status.replicas,
            ready=status.ready_replicas,
            available=status.available_replicas,
            updated=status.updated_replicas,
            updated_ready=status.updated_ready_replicas,
            updated_available=status.updated_available_replicas,
            expected_updated=status.expected_updated_replicas,
        ),
        observed_generation=status.observed_generation,
        update_revision=status.update_revision,
        current_revision=status.current_revision,
        partition=rolling.partition or 0,
        paused=rolling.paused,
        on_delete=spec.update_strategy.type == "OnDelete",
        min_ready_seconds=spec.min_ready_seconds,
        belongs=belongs,
    )


picture: Opener = partial(LiveTree, clone_set)
