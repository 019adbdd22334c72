"""The state that the steps of one pass share: the snapshot and the facts derived from it."""

from datetime import datetime

import msgspec

from flotilla_cloneset.cloneset.claims import Claims
from flotilla_cloneset.cloneset.classification import Classification, traits
from flotilla_cloneset.cloneset.numbers import Targets
from flotilla_cloneset.cloneset.revisions import CODEC
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import RollingUpdate
from flotilla_common.api.meta import struct_cached_property
from flotilla_common.api.selectors import Selector
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.inplace import InPlaceContext
from flotilla_common.workload.revision_codec import belongs
from flotilla_common.workload.revisions import RevisionChoice


class PlanContext(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One CloneSet at the moment of planning."""

    snapshot: CloneSetSnapshot
    now: datetime
    selector: Selector
    revisions: RevisionChoice
    pods: Classification
    claims: Claims
    targets: Targets
    disruptions: Disruptions

    @property
    def rolling(self) -> RollingUpdate:
        """The update settings, with defaults for what the spec omits."""
        return self.snapshot.cloneset.spec.update_strategy.rolling_update or RollingUpdate()

    @property
    def rollback(self) -> bool:
        """Report whether pods may go back to the current revision (cloneset.md §4.3)."""
        differ = self.revisions.update.metadata.name != self.revisions.current.metadata.name
        return differ and self.snapshot.gates.on("CloneSetPartitionRollback")

    @property
    def in_place(self) -> InPlaceContext:
        """The inputs of an in-place update besides the pod."""
        options = self.snapshot.options
        return InPlaceContext(
            codec=CODEC,
            lifecycle=self.snapshot.cloneset.spec.lifecycle,
            gates=self.snapshot.gates,
            server_version=options.server_version,
            now=self.now,
            drop_field_owners=options.drop_field_owners,
        )

    def dispensable(self, pod: Pod) -> bool:
        """Report whether the pod may be lost without cost to availability.

        This is a pod that is not ready; or one that has not been ready for minReadySeconds while enough others have;
        or, in the middle of a rollout, one while enough others have been ready for longer.
        """
        if not traits(pod).serviceable:
            return True
        if pod.metadata.uid not in self.pods.unavailable:
            return False
        return not self.mainstay(pod)

    def mainstay(self, pod: Pod) -> bool:
        """Report whether the pod is needed though it is not available: it is ready, and too few pods are available."""
        if pod.metadata.uid not in self.pods.unavailable or not traits(pod).serviceable:
            return False
        if self.pods.counts.available >= self._needed:
            return False
        return not self.pods.old or pod.metadata.uid in self._mainstay

    @property
    def _needed(self) -> int:
        return max(self.targets.replicas - self.targets.max_unavailable, 0)

    @struct_cached_property
    def _mainstay(self) -> frozenset[str]:
        """Return the uids of the pods that have been ready longest, as many as are needed.

        Among equals, pods of the current revision that are not specified for deletion come first.
        """
        current, chosen = self.revisions.current.metadata.name, self.pods.specified_uids
        ready = (
            (pod.ready_since, not belongs(pod.revision, current), pod.metadata.uid in chosen, pod.metadata.uid)
            for pod in self.pods.active
            if traits(pod).serviceable and pod.ready_since is not None
        )
        return frozenset(uid for *_, uid in sorted(ready)[: self._needed])
