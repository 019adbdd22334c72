"""Pods that somebody wants deleted, by their label `apps.kruise.io/specified-delete` (common.md §2), as for the other
workloads: within maxUnavailable, whatever the rollout does. Their nodes get new pods of the newest revision.

Deleting a pod oneself does the same at once, and asks neither the hook nor how many pods serve.
"""

from flotilla_common.api.core import Pod
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Intent, State
from flotilla_common.control.wording import named, nodes_word
from flotilla_common.workload.predicates import is_serving
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.nodes import NodeState
from flotilla_daemonset.daemonset.pods import is_specified
from flotilla_daemonset.daemonset.spare import spared
from flotilla_daemonset.daemonset.work import Work


def plan_specified(context: PlanContext, work: Work, draft: Draft) -> None:
    """Delete them, from the last node on; available ones only while fewer nodes than allowed are without."""
    wanted = [pod for state in reversed(context.pending) for pod in state.living if is_specified(pod)]
    if not wanted:
        return
    most = max(context.targets.max_unavailable, 1)  # there may be none to spare: maxSurge, OnDelete
    served = sum(_keeps_a_pod(context, state, work) for state in context.nodes)
    budget = max(most - (context.targets.desired - served), 0)
    late = [pod for pod in wanted if is_serving(pod) and not context.is_available(pod)]
    _, too_young = spared(context, context.nodes, late, work, needed=context.targets.desired - most)
    kept = {pod.metadata.uid for pod in too_young}
    waiting: list[Pod] = []
    for pod in wanted:
        if work.takes(pod):
            continue
        if pod.metadata.uid in kept:
            waiting.append(pod)
            continue
        if context.is_available(pod):
            if budget <= 0:
                waiting.append(pod)
                continue
            budget -= 1
        work.delete(pod, Intent.DELETE, "specified for deletion")
    if waiting:
        text = f"{named(waiting)} (specified for deletion) would be unavailable; "
        text += f"maxUnavailable is {most}, {context.targets.desired - served} of {nodes_word(context.targets.desired)}"
        draft.reason(State.WAITING, "WaitingForDeleteBudget", f"{text} have no available pod", waiting)


def _keeps_a_pod(context: PlanContext, state: NodeState, work: Work) -> bool:
    """The node is to have a pod, and an available one stays after what this pass takes away so far."""
    if state.done:
        return True
    return state.fit.should_run and any(context.is_available(pod) and not work.takes(pod) for pod in state.living)
