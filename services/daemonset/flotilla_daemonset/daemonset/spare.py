"""Finds pods that may be deleted although they have not served for minReadySeconds yet (daemonset.md §4.8)."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.workload.predicates import is_serving
from flotilla_common.workload.serving import Serving
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.nodes import NodeState
from flotilla_daemonset.daemonset.pod_actions import PodActions


def spared(
    context: PlanContext, nodes: Iterable[NodeState], late: Sequence[Pod], actions: PodActions, *, needed: int
) -> tuple[list[Pod], list[Pod]]:
    """Split the `late` pods into (dispensable, needed).

    A pod is dispensable if `needed` others on these nodes have been Ready for at least as long.
    """
    if not late:
        return [], []
    pods = (state.living[0] for state in nodes if state.living)
    serving = Serving((_ready(context, pod) for pod in pods if is_serving(pod) and not actions.takes(pod)), needed)
    found: list[Pod] = []
    rest: list[Pod] = []
    for pod in late:
        since = _ready(context, pod)
        if serving.can_spare(since):
            serving.take(since)
            found.append(pod)
        else:
            rest.append(pod)
    return found, rest


def _ready(context: PlanContext, pod: Pod) -> datetime:
    return pod.ready_since or context.now
