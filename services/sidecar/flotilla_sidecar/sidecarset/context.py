"""The state that the steps of one pass share: the snapshot and the facts derived from it."""

from datetime import datetime

import msgspec

from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, SidecarSet, SidecarSetUpdateStrategy
from flotilla_common.api.numbers import Reading, partition_value, strict_value
from flotilla_common.control.plan import Frozen
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.revisions import RevisionChoice
from flotilla_sidecar.sidecarset.desired import DesiredSidecars
from flotilla_sidecar.sidecarset.pods import Pods
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot


class Targets(Frozen):
    """The numbers of the spec, in pods. `problems` lists unreadable fields and the values used instead."""

    partition: int  # the number of updatable pods that are kept as they are
    max_unavailable: int
    problems: tuple[str, ...] = ()


def targets(strategy: SidecarSetUpdateStrategy, matched: int) -> Targets:
    """Resolve the numbers for `matched` pods. An unreadable field gets a cautious value.

    maxUnavailable is 1 when absent; a percentage is rounded up. 0 updates only pods that are not ready anyway.
    """
    reading, limit = Reading(), 1 if strategy.max_unavailable is None else strategy.max_unavailable
    kept = "all pods are kept as they are"
    return Targets(
        partition=reading.field("partition", lambda: partition_value(strategy.partition, matched), matched, kept),
        max_unavailable=reading.field("maxUnavailable", lambda: max(strict_value(limit, matched, round_up=True), 0), 1),
        problems=reading.problems,
    )


class PlanContext(msgspec.Struct, frozen=True, kw_only=True):
    """One SidecarSet at the moment of planning."""

    snapshot: SidecarSetSnapshot
    now: datetime
    desired: DesiredSidecars
    revisions: RevisionChoice
    pods: Pods
    targets: Targets
    disruptions: Disruptions

    @property
    def sidecar_set(self) -> SidecarSet:
        """The SidecarSet itself."""
        return self.snapshot.sidecar_set

    @property
    def strategy(self) -> SidecarSetUpdateStrategy:
        """The update strategy."""
        return self.sidecar_set.spec.update_strategy

    @property
    def updates(self) -> bool:
        """Report whether pods are updated at all."""
        return self.strategy.type != NOT_UPDATE

    @property
    def revision_name(self) -> str:
        """The name of the newest spec's revision, which updated pods record."""
        return self.revisions.update.metadata.name
