"""The state that the steps of one pass share: the snapshot and the facts derived from it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

import msgspec

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.kinds.daemonset.types import DaemonSet
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import LifecycleHook
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.inplace import InPlaceContext
from flotilla_common.workload.predicates import Serving, is_serving
from flotilla_daemonset.daemonset.numbers import Targets
from flotilla_daemonset.daemonset.pods import Criteria, Membership, NodeState, NodeView
from flotilla_daemonset.daemonset.revisions import CODEC, Revisions, hash_of
from flotilla_daemonset.daemonset.snapshot import DaemonSetSnapshot


class PlanContext(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One DaemonSet at the moment of planning."""

    snapshot: DaemonSetSnapshot
    now: datetime
    selector: Selector
    revisions: Revisions
    members: Membership
    node_view: NodeView
    criteria: Criteria
    targets: Targets
    disruptions: Disruptions

    @property
    def daemonset(self) -> DaemonSet:
        """The DaemonSet itself."""
        return self.snapshot.daemonset

    @property
    def nodes(self) -> list[NodeState]:
        """The nodes that should have a pod or have one, by name."""
        return self.node_view.nodes

    @property
    def pending(self) -> list[NodeState]:
        """The subset of these nodes whose pod is missing, outdated, not available, or not alone."""
        return self.node_view.pending

    @property
    def pre_delete(self) -> LifecycleHook | None:
        """The hook that may hold pods before their deletion."""
        lifecycle = self.daemonset.spec.lifecycle
        return lifecycle.pre_delete if lifecycle is not None else None

    @cached_property
    def history(self) -> Mapping[str, ControllerRevision]:
        """The older revisions by hash."""
        return {hash_of(revision): revision for revision in self.revisions.old}

    @cached_property
    def in_place(self) -> InPlaceContext:
        """The inputs of an in-place update besides the pod. Such updates use neither hooks nor states (§4.8)."""
        options = self.snapshot.options
        return InPlaceContext(
            codec=CODEC,
            lifecycle=None,
            gates=self.snapshot.gates,
            server_version=options.server_version,
            now=self.now,
            has_states=False,
            revision_names={self.revisions.hash: self.revisions.name}
            | {hash_: revision.metadata.name for hash_, revision in self.history.items()},
            drop_field_owners=options.drop_field_owners,
        )

    def is_available(self, pod: Pod) -> bool:
        """Report whether the pod has been serving for long enough."""
        return self.criteria.is_available(pod)

    def spared(
        self, nodes: Iterable[NodeState], late: Sequence[Pod], taken: Callable[[Pod], bool], *, needed: int
    ) -> tuple[list[Pod], list[Pod]]:
        """Split pods that have not served for minReadySeconds yet into (dispensable, needed) ones (§4.8).

        A pod is dispensable if `needed` others on these nodes, except pods `taken` by this pass, have been Ready for at
        least as long.
        """
        if not late:
            return [], []
        pods = (state.living[0] for state in nodes if state.living)
        serving = Serving((pod.ready_since or self.now for pod in pods if is_serving(pod) and not taken(pod)), needed)
        dispensable: list[Pod] = []
        rest: list[Pod] = []
        for pod in late:
            since = pod.ready_since or self.now
            if serving.can_spare(since):
                serving.take(since)
                dispensable.append(pod)
            else:
                rest.append(pod)
        return dispensable, rest
