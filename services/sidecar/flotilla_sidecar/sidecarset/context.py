"""What the steps of one pass share: the snapshot, and what has been worked out from it."""

from datetime import datetime

import msgspec

from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, SidecarSet, SidecarSetUpdateStrategy
from flotilla_common.api.numbers import Reading, partition_value, strict_value
from flotilla_common.control.plan import Frozen
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.revisions import RevisionChoice
from flotilla_sidecar.sidecarset.pods import Pods
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot
from flotilla_sidecar.sidecarset.wanted import Wanted


class Targets(Frozen):
    """What the spec asks for, in pods. `problems` names the fields that could not be read and the value used
    instead."""

    partition: int  # of the pods that could be updated, so many are kept as they are
    max_unavailable: int
    problems: tuple[str, ...] = ()


def targets(strategy: SidecarSetUpdateStrategy, matched: int) -> Targets:
    """Resolve the numbers for so many pods. What cannot be read is replaced by the careful choice.

    maxUnavailable is 1 when absent; a percentage is rounded up. 0 updates only what is not ready anyway."""
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
    wanted: Wanted
    revisions: RevisionChoice
    pods: Pods
    targets: Targets
    disruptions: Disruptions

    @property
    def sidecar_set(self) -> SidecarSet:
        """The set itself."""
        return self.snapshot.sidecar_set

    @property
    def strategy(self) -> SidecarSetUpdateStrategy:
        """How pods are updated."""
        return self.sidecar_set.spec.update_strategy

    @property
    def updates(self) -> bool:
        """Pods are updated at all."""
        return self.strategy.type != NOT_UPDATE

    @property
    def revision_name(self) -> str:
        """The revision of the newest spec, which updated pods remember."""
        return self.revisions.update.metadata.name
