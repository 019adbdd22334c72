"""The state that the steps of one pass share: the snapshot and the facts derived from it."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.kinds.statefulset.types import RollingUpdate, StatefulSet
from flotilla_common.api.selectors import Selector
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.claims import ClaimTemplate, claims_of_revision
from flotilla_common.workload.inplace import InPlaceContext
from flotilla_common.workload.predicates import Serving
from flotilla_common.workload.revisions import RevisionChoice
from flotilla_statefulset.statefulset.claims import Claims
from flotilla_statefulset.statefulset.numbers import Targets
from flotilla_statefulset.statefulset.pods import Pods, traits
from flotilla_statefulset.statefulset.revisions import CODEC
from flotilla_statefulset.statefulset.snapshot import StatefulSetSnapshot

RECREATE, IN_PLACE_ONLY = "ReCreate", "InPlaceOnly"


class PlanContext(msgspec.Struct, frozen=True, kw_only=True):
    """One StatefulSet at the moment of planning."""

    snapshot: StatefulSetSnapshot
    now: datetime
    selector: Selector
    revisions: RevisionChoice
    pods: Pods
    claims: Claims
    targets: Targets
    disruptions: Disruptions

    @property
    def statefulset(self) -> StatefulSet:
        """The StatefulSet itself."""
        return self.snapshot.statefulset

    @property
    def rolling(self) -> RollingUpdate:
        """The update settings, with defaults for what the spec omits."""
        return self.statefulset.spec.update_strategy.rolling_update or RollingUpdate()

    @property
    def update_name(self) -> str:
        """The name of the update revision, which is on the pods' labels."""
        return self.revisions.update.metadata.name

    @property
    def history(self) -> Mapping[str, ControllerRevision]:
        """The stored revisions by name."""
        return {revision.metadata.name: revision for revision in self.snapshot.revisions}

    def claim_templates(self, revision: ControllerRevision) -> tuple[ClaimTemplate, ...]:
        """Return the claim templates of pods of the revision: the current ones, or those recorded with it."""
        today = self.claims.templates
        return today if revision.metadata.name == self.update_name else claims_of_revision(revision, today)

    def is_updated(self, ordinal: int, pod: Pod) -> bool:
        """Report whether the pod is on the update revision and lacks no volume."""
        return pod.revision == self.update_name and ordinal not in self.pods.unfit

    def pod_name(self, ordinal: int) -> str:
        """Return the name of the ordinal's pod."""
        return f"{self.statefulset.metadata.name}-{ordinal}"

    def in_place(self, pod: Pod) -> InPlaceContext:
        """Return the inputs of an in-place update of the pod. A pod without lifecycle state gets none (§4.8)."""
        options = self.snapshot.options
        return InPlaceContext(
            codec=CODEC,
            lifecycle=self.statefulset.spec.lifecycle,
            gates=self.snapshot.gates,
            server_version=options.server_version,
            now=self.now,
            has_states=bool(pod.state),
            drop_field_owners=options.drop_field_owners,
        )

    def is_proven(self, *, missing: bool) -> bool:
        """Report whether new pods seem to work: fewer than maxUnavailable of them do not serve, or more do (§4.8).

        Otherwise old pods are left alone, even broken ones: each that fails for a moment would be replaced by a pod
        that is known not to work. `missing`: absent pods come back as new ones, and count.
        """
        fresh = 0
        for ordinal in self.pods.unavailable - self.pods.waiting.keys():
            pod = self.pods.by_ordinal.get(ordinal)
            fresh += missing if pod is None else self.is_updated(ordinal, pod) or traits(pod).terminating
        return fresh < self.targets.max_unavailable or self.pods.counts.updated_available > fresh


class Spare:
    """The wanted pods that serve, some of which an update may take before they are available (§4.8).

    A pod can be spared while enough others have served at least as long.
    """

    def __init__(self, context: PlanContext) -> None:
        self._context = context
        pods, targets = context.pods, context.targets
        serving = (
            pod
            for ordinal, pod in (pods.by_ordinal.items() if pods.waiting else ())
            if ordinal in targets.ordinals and (ordinal not in pods.unavailable or self.is_late(ordinal))
        )
        self._serving = Serving(map(self._ready, serving), targets.replicas - targets.max_unavailable)

    def is_late(self, ordinal: int) -> bool:
        """Report whether the pod serves, but not for minReadySeconds yet."""
        pods = self._context.pods
        return ordinal in pods.waiting and not traits(pods.by_ordinal[ordinal]).terminating

    def has(self, ordinal: int) -> bool:
        """Report whether this late pod can be spared."""
        return self._serving.can_spare(self._ready(self._context.pods.by_ordinal[ordinal]))

    def take(self, pod: Pod) -> None:
        """Count the pod as no longer serving."""
        self._serving.take(self._ready(pod))

    def _ready(self, pod: Pod) -> datetime:
        return pod.ready_since or self._context.now
