"""What the steps of one pass share: the snapshot, and what has been worked out from it."""

from datetime import datetime

import msgspec

from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, SidecarSet, SidecarSetUpdateStrategy
from flotilla_common.workload.revisions import RevisionChoice
from flotilla_sidecar.sidecarset.numbers import Targets
from flotilla_sidecar.sidecarset.pods import Pods
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot
from flotilla_sidecar.sidecarset.wanted import Wanted


class PlanContext(msgspec.Struct, frozen=True, kw_only=True):
    """One SidecarSet at the moment of planning."""

    snapshot: SidecarSetSnapshot
    now: datetime
    wanted: Wanted
    revisions: RevisionChoice
    pods: Pods
    targets: Targets

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
