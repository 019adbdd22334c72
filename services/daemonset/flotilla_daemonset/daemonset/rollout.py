"""Plans the rolling update: which nodes get the template's revision in this pass, and how (daemonset.md §4.8).

Nodes are visited by name, from the last to the first. Broken old pods are replaced at once, since they do not serve.
But every node without an available pod uses up the budget, so that no number of broken revisions takes more than
maxUnavailable nodes out of service. A pod is updated in place if possible, else deleted.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import IN_PLACE_READY, REVISION_LABEL
from flotilla_common.control.plan import Chain, Event, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named, nodes_word, pods_word
from flotilla_common.workload.inplace import UpdateSpec, calculate
from flotilla_common.workload.inplace.calculate import hindrances_between
from flotilla_common.workload.inplace.update import start
from flotilla_common.workload.lifecycle import PREPARING_DELETE
from flotilla_common.workload.predicates import is_serving
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pod_actions import PodActions
from flotilla_daemonset.daemonset.pods import NodeState
from flotilla_daemonset.daemonset.revisions import CODEC


class RolloutScope(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that the rollout may change, and the nodes that it leaves alone (step C)."""

    kept: list[NodeState]
    behind_partition: int  # nodes with old pods that the partition keeps
    not_selected: list[str]  # nodes with old pods outside rollingUpdate.selector


class Updater:
    """Collects the pods that a pass updates."""

    def __init__(self, context: PlanContext, actions: PodActions, builder: PlanBuilder) -> None:
        self._context = context
        self._actions = actions
        self._builder = builder
        self._most = min(context.targets.burst, MAX_CHAINS_PER_PASS)
        self._chains: list[Chain] = []
        self._recreated = 0
        self._hindrance = ""

    def update(self, pod: Pod) -> None:
        """Update the pod, unless another step of the pass writes it already."""
        if pod.metadata.uid in self._builder.touched:
            return
        spec = self._in_place_spec(pod)
        if spec is None:
            self._recreated += 1
            self._actions.recreate(pod)
        elif len(self._chains) < self._most:
            chain = self._start(pod, spec)
            if self._context.disruptions.try_take_for(pod, chain) and self._builder.touch(pod):
                self._chains.append(chain)

    def stage(self) -> None:
        """Stage the in-place updates. If one fails, no pod is deleted for the update."""
        self._builder.stage(self._chains)
        if self._chains:
            text = f"updating {pods_word(len(self._chains))} in place to {self._context.revisions.name}"
            self._builder.reason(State.PROGRESSING, "Updating", text)
        if self._recreated:
            why = f": {self._hindrance}" if self._hindrance else ""
            text = f"recreating {pods_word(self._recreated)} for {self._context.revisions.name}{why}"
            self._builder.reason(State.PROGRESSING, "Recreating", text)

    def _in_place_spec(self, pod: Pod) -> UpdateSpec | None:
        """Return how the pod is updated in place; None if that is impossible."""
        context = self._context
        if not context.targets.in_place:
            return None
        old = context.history.get(pod.revision)
        if old is None or IN_PLACE_READY not in pod.gates:
            self._hindrance = f"{pod.metadata.name} lacks its revision or the readiness gate {IN_PLACE_READY}"
            return None
        spec = calculate(CODEC, old, context.revisions.update, gates=context.snapshot.gates)
        if spec is None and not self._hindrance:
            self._hindrance = hindrances_between(CODEC, old, context.revisions.update, context.snapshot.gates)
        return spec

    def _start(self, pod: Pod, spec: UpdateSpec) -> Chain:
        name, revision = pod.metadata.name, self._context.revisions.name
        return start(
            pod,
            spec,
            self._context.in_place,
            revision_labels={REVISION_LABEL: self._context.revisions.hash},
            on_success=Event("SuccessfulUpdatePodInPlace", f"successfully update pod {name} in-place"),
            on_failure=Event(
                "FailedUpdatePodInPlace", f"failed to update pod {name} in-place(revision {revision}): ", warning=True
            ),
        )


def plan_rollout(context: PlanContext, actions: PodActions, builder: PlanBuilder) -> None:
    """Plan the next steps of the rolling update; nothing while it is paused, or left to the user."""
    updater = Updater(context, actions, builder)
    if not context.targets.on_delete and not context.targets.paused:
        scope = rollout_scope(context, actions)
        if context.targets.surging:
            _plan_surge(context, scope.kept, actions, builder)
        else:
            _plan_replacements(context, scope.kept, actions, updater, builder)
        _explain_scope(context, scope, builder)
    actions.stage_creates()
    updater.stage()
    actions.stage_deletes()


def rollout_scope(context: PlanContext, actions: PodActions) -> RolloutScope:
    """Return the nodes that may be changed.

    Nodes that are updated or being updated come first, so that widening partition or selector continues where it stood.
    A pod that this pass deletes in any case does not count as staying.
    """
    updated: list[NodeState] = []
    updating: list[NodeState] = []
    candidates: list[NodeState] = []
    not_selected: list[str] = []
    nodes = list(_mapped(context))
    selector = context.targets.nodes
    for state in reversed(nodes):
        if state.new is not None or state.messy:
            updated.append(state)
        elif _is_leaving(state.old, actions):
            updating.append(state)
        elif selector is None or selector.matches(state.node.metadata.labels):
            candidates.append(state)
        else:
            not_selected.append(state.name)
    most = max(len(nodes) - context.targets.partition, 0)
    everyone = [*updated, *updating, *candidates]
    behind = min(max(len(everyone) - most, 0), len(candidates))
    return RolloutScope(kept=everyone[:most], behind_partition=behind, not_selected=not_selected)


def _mapped(context: PlanContext) -> Iterator[NodeState]:
    """Return the nodes that count (step A): gate DaemonSetPruneIneligibleNodes leaves out ineligible nodes."""
    if not context.snapshot.gates.on("DaemonSetPruneIneligibleNodes"):
        return iter(context.nodes)
    return (state for state in context.nodes if state.fit.should_run)


def _plan_replacements(
    context: PlanContext, kept: Sequence[NodeState], actions: PodActions, updater: Updater, builder: PlanBuilder
) -> None:
    """Update old pods in place or delete them (step D): broken ones at once, serving ones within maxUnavailable."""
    unavailable: list[str] = []
    free: list[Pod] = []
    late: list[Pod] = []
    candidates: list[Pod] = []
    for state in kept:
        if state.done:
            continue
        if state.old is not None and _is_outdated(state, actions):
            available = context.is_available(state.old)
            (candidates if available else late if is_serving(state.old) else free).append(state.old)
            unavailable += [state.name] * (not available)
        else:
            unavailable += [state.name] * _lost(context, state, actions)
    budget = max(context.targets.max_unavailable - len(unavailable), 0)
    young, too_young = context.spared(kept, late, actions.takes, needed=len(kept) - context.targets.max_unavailable)
    for pod in (*free, *young, *islice(candidates, budget)):
        updater.update(pod)
    waiting = [*candidates[budget:], *too_young]
    if waiting:
        _explain_budget(context, waiting, unavailable, min(budget, len(candidates)), builder)


def _lost(context: PlanContext, state: NodeState, actions: PodActions) -> int:
    """Return how much of maxUnavailable the node uses up, if more than an update of its pod is going on."""
    new, old = state.new, state.old
    if state.messy or (_is_leaving(new, actions) and _is_leaving(old, actions)):
        return 1
    if new is None or not (_is_leaving(new, actions) or _is_leaving(old, actions)):
        return 1
    return (not context.is_available(new)) + (new.state == PREPARING_DELETE)


def _is_outdated(state: NodeState, actions: PodActions) -> bool:
    """Report whether an old pod is all that the node has."""
    return state.new is None and not _is_leaving(state.old, actions) and not state.messy


def _is_leaving(pod: Pod | None, actions: PodActions) -> bool:
    """Report whether the pod is absent or on its way out, in this pass at the latest."""
    return pod is None or pod.state == PREPARING_DELETE or actions.takes(pod)


def _plan_surge(context: PlanContext, kept: Sequence[NodeState], actions: PodActions, builder: PlanBuilder) -> None:
    """Start new pods beside old ones (step E) within maxSurge; an old pod is deleted once its new one is available."""
    surging: list[str] = []
    free: list[NodeState] = []
    candidates: list[NodeState] = []
    for state in kept:
        old, new = state.old, state.new
        if state.messy:
            surging.append(state.name)
        elif old is None or old.state == PREPARING_DELETE:
            continue
        elif new is None and not state.fit.should_run:
            continue  # a new pod would not be scheduled there
        elif new is None:
            (candidates if is_serving(old) else free).append(state)
        elif not context.is_available(new) or _is_leaving(new, actions):
            surging.append(state.name)
            builder.deadlines.until(context.criteria.available_at(new))
        else:
            actions.delete(old, Intent.SCALE_IN, f"{new.metadata.name} is available")
    budget = max(context.targets.max_surge - len(surging), 0)
    for state in (*free, *islice(candidates, budget)):
        actions.create(state.name)
    if waiting := candidates[budget:]:
        limit = context.targets.max_surge
        text = f"{nodes_word(len(waiting))} to be updated; maxSurge {limit} is used by {named(surging)}"
        names = [state.name for state in waiting]
        builder.reason(State.WAITING, "WaitingForMaxSurge", text if surging else f"maxSurge is {limit}", names)


def _explain_budget(
    context: PlanContext, waiting: list[Pod], unavailable: list[str], started: int, builder: PlanBuilder
) -> None:
    users = [f"the pods of {named(unavailable)}"] if unavailable else []
    users += [f"{pods_word(started)} of this pass"] if started else []
    limit = context.targets.max_unavailable
    text = f"{pods_word(len(waiting))} to be updated; maxUnavailable {limit} is used by {' and '.join(users)}"
    builder.reason(State.WAITING, "WaitingForMaxUnavailable", text, waiting)


def _explain_scope(context: PlanContext, scope: RolloutScope, builder: PlanBuilder) -> None:
    if scope.behind_partition:
        kept, partition = nodes_word(scope.behind_partition), context.targets.partition
        updated = sum(state.new is not None for state in context.nodes)
        text = f"{updated} of {nodes_word(context.targets.desired)} updated, partition {partition} keeps {kept} on"
        builder.reason(State.HELD, "PartitionReached", f"{text} older revisions")
    if scope.not_selected:
        names, selector = sorted(scope.not_selected), context.targets.nodes
        text = f"{nodes_word(len(names))} not selected by rollingUpdate.selector {selector}: {named(names)}"
        builder.reason(State.HELD, "NotSelected", text, names)
