"""Plans what each node needs, regardless of the rollout (daemonset.md §4.5, §4.6).

Missing pods are created, excess pods deleted, and failed pods and pods specified for deletion replaced.
"""

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Event, Intent, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, nodes_word
from flotilla_common.workload.lifecycle import PREPARING_DELETE
from flotilla_common.workload.predicates import is_serving
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pod_actions import PodActions
from flotilla_daemonset.daemonset.pods import NodeState, is_running, is_specified


def plan_manage(context: PlanContext, actions: PodActions, builder: PlanBuilder) -> None:
    """Plan what the nodes need."""
    step = _Manage(context, actions, builder)
    missing = [state for state in context.pending if step.visit(state)]
    for pod in context.node_view.lost:
        if pod.metadata.deletion_timestamp is None:
            actions.delete(pod, Intent.DELETE, "its node does not exist")
    for state in _allowed(context, missing, builder):
        actions.create(state.name)
    step.explain()


class _Manage:
    """The walk over the nodes, one after the other."""

    def __init__(self, context: PlanContext, actions: PodActions, builder: PlanBuilder) -> None:
        self._context = context
        self._actions = actions
        self._builder = builder
        self._failed: list[Pod] = []  # failed pods that are left alone for a while

    def visit(self, state: NodeState) -> bool:
        """Delete excess pods of the node. Return True if it lacks a pod."""
        if not state.pods:
            return state.fit.should_run
        if not state.fit.should_continue:
            for pod in state.living:
                self._actions.delete(pod, Intent.DELETE, f"the node {state.fit.why_not}")
            return False
        if len(state.living) == 1 and is_running(state.living[0]):  # nearly always
            return False
        running = [pod for pod in state.living if is_running(pod)]
        for pod in state.living:
            self._repair(state.name, pod)
        if not self._context.targets.surging:
            for pod in running[1:]:
                self._actions.delete(pod, Intent.SCALE_IN, "the node has several pods")
        elif len(running) > 1:
            self._thin_out(running)
        return self._context.targets.surging and not running and state.fit.should_run

    def explain(self) -> None:
        """Add a reason for the failed pods that are left alone."""
        if self._failed:
            text = f"{named(self._failed)} failed again: replacement waits for the backoff"
            self._builder.reason(State.WAITING, "WaitingForBackoff", text, self._failed)

    def _repair(self, node: str, pod: Pod) -> None:
        """Replace a failed pod, or continue the deletion of a pod in PreparingDelete."""
        if pod.status.phase == "Failed":
            self._replace(node, pod)
        elif pod.state == PREPARING_DELETE:
            self._actions.delete(pod, Intent.DELETE, "released by the preDelete hook")

    def _replace(self, node: str, pod: Pod) -> None:
        context = self._context
        previous = context.snapshot.previous_pods.get(node)
        generation = context.daemonset.status.observed_generation
        until = previous.backoff_until(context.now, generation) if previous is not None else None
        if until is not None:
            self._builder.deadlines.until(until)
            self._failed.append(pod)
            return
        self._actions.delete(pod, Intent.REPLACE, "the pod failed")
        if self._actions.takes(pod) and pod.state != PREPARING_DELETE:  # once, however long the hook holds it
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            text = f"Found failed daemon pod {name} on node {node}, will try to kill it"
            self._builder.events.append(Event("FailedDaemonPod", text, warning=True))

    def _thin_out(self, running: list[Pod]) -> None:
        """Delete surplus pods of a surging node.

        One old pod may stay beside one new pod until the new one is available or the old one fails.
        """
        criteria = self._context.criteria
        new = [pod for pod in running if criteria.is_updated(pod)]
        old = [pod for pod in running if not criteria.is_updated(pod)]
        for pod in (*new[1:], *old[1:]):
            self._actions.delete(pod, Intent.SCALE_IN, "the node has several updated or several old pods")
        if not new or not old:
            return
        if not old[0].ready:
            self._actions.delete(old[0], Intent.SCALE_IN, "it is not ready, and a new pod exists")
        elif criteria.is_available(new[0]):
            self._actions.delete(old[0], Intent.SCALE_IN, f"{new[0].metadata.name} is available")
        else:
            self._builder.deadlines.until(criteria.available_at(new[0]))


def _allowed(context: PlanContext, missing: list[NodeState], builder: PlanBuilder) -> list[NodeState]:
    """Return the nodes that may get their first pod: with partitionedScaling the partition stays without (§4.5)."""
    targets = context.targets
    if not missing or not targets.partitioned_scaling or not targets.partition:
        return missing
    there = sum(state.new is not None and not state.messy for state in context.nodes)
    most = max(targets.desired - there - min(targets.partition, targets.desired), 0)
    kept = missing[most:]
    if kept:
        names = [state.name for state in kept]
        text = f"no pod on {nodes_word(len(kept))} yet: partition {targets.partition} applies to new pods, too: "
        builder.reason(State.HELD, "PartitionedScaling", f"{text}{named(names)}", names)
    return missing[:most]


def plan_specified(context: PlanContext, actions: PodActions, builder: PlanBuilder) -> None:
    """Delete the pods labelled for deletion (common.md §2), from the last node on.

    Available pods are deleted only while fewer nodes than allowed are without an available pod. Their nodes get new
    pods of the newest revision. Deleting a pod directly has the same effect at once, but ignores the hook and the
    availability of other pods.
    """
    wanted = [pod for state in reversed(context.pending) for pod in state.living if is_specified(pod)]
    if not wanted:
        return
    most = max(context.targets.max_unavailable, 1)  # the spec may leave none (maxSurge, OnDelete)
    served = sum(_keeps_a_pod(context, state, actions) for state in context.nodes)
    budget = max(most - (context.targets.desired - served), 0)
    late = [pod for pod in wanted if is_serving(pod) and not context.is_available(pod)]
    _, too_young = context.spared(context.nodes, late, actions.takes, needed=context.targets.desired - most)
    kept = {pod.metadata.uid for pod in too_young}
    waiting: list[Pod] = []
    for pod in wanted:
        if actions.takes(pod):
            continue
        if pod.metadata.uid in kept:
            waiting.append(pod)
            continue
        if context.is_available(pod):
            if budget <= 0:
                waiting.append(pod)
                continue
            budget -= 1
        actions.delete(pod, Intent.DELETE, "specified for deletion")
    if waiting:
        text = f"{named(waiting)} (specified for deletion) would be unavailable; "
        text += f"maxUnavailable is {most}, {context.targets.desired - served} of {nodes_word(context.targets.desired)}"
        builder.reason(State.WAITING, "WaitingForDeleteBudget", f"{text} have no available pod", waiting)


def _keeps_a_pod(context: PlanContext, state: NodeState, actions: PodActions) -> bool:
    """Report whether the node should have a pod and keeps an available one after this pass's deletes so far."""
    if state.done:
        return True
    return state.fit.should_run and any(context.is_available(pod) and not actions.takes(pod) for pod in state.living)
