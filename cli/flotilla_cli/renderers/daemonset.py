"""DaemonSet: the tree of its revisions and pods, by node."""

from functools import partial

import msgspec

from flotilla_cli.picture import Opener
from flotilla_cli.tree.live import LiveTree
from flotilla_cli.tree.workload import Numbers, Workload
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet, RollingUpdate


def daemon_set(raw: bytes | msgspec.Raw) -> Workload:
    """What the tree needs to know of a DaemonSet."""
    daemonset = msgspec.json.decode(raw, type=DaemonSet)
    spec, status = daemonset.spec, daemonset.status
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    newest = f"{daemonset.metadata.name}-{status.update_revision}" if status.update_revision else ""
    return Workload(
        kind=DAEMON_SET.kind,
        metadata=daemonset.metadata,
        numbers=Numbers(
            desired=status.desired_number_scheduled,
            total=status.current_number_scheduled,
            ready=status.number_ready,
            available=status.number_available,
            updated=status.updated_number_scheduled,
            updated_ready=0,
            updated_available=0,
            expected_updated=status.desired_number_scheduled,
        ),
        observed_generation=status.observed_generation,
        update_revision=newest,
        current_revision="",
        partition=rolling.partition or 0,
        paused=rolling.paused,
        on_delete=spec.update_strategy.type == "OnDelete",
        min_ready_seconds=spec.min_ready_seconds,
    )


picture: Opener = partial(LiveTree, daemon_set)
