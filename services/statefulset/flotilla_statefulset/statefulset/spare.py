"""Finds the pods that an update may take although maxUnavailable is used up (statefulset.md §4.8).

These are broken old pods, since they do not serve. But if it is the *new* pods that use up the budget, because they do
not become available, old pods are left alone: each that fails for a moment would be replaced by one that is known not
to work. And these are pods that serve, but not for minReadySeconds yet, while enough others have served at least as
long.
"""

from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.workload.serving import Serving
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.pods import traits


def is_proven(context: PlanContext, *, missing: bool) -> bool:
    """Report whether new pods seem to work: fewer than maxUnavailable of them do not serve, or more do.

    `missing`: absent pods come back as new ones, and count.
    """
    pods, fresh = context.pods, 0
    for ordinal in pods.unavailable - pods.waiting.keys():
        pod = pods.by_ordinal.get(ordinal)
        fresh += missing if pod is None else context.is_updated(ordinal, pod) or traits(pod).terminating
    return fresh < context.targets.max_unavailable or pods.counts.updated_available > fresh


class Spare:
    """The wanted pods that serve, some of which an update may take before they are available."""

    def __init__(self, context: PlanContext) -> None:
        self._context = context
        pods, targets = context.pods, context.targets
        serving = (
            pod
            for one, pod in (pods.by_ordinal.items() if pods.waiting else ())
            if one in targets.ordinals and (one not in pods.unavailable or self.is_late(one))
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
