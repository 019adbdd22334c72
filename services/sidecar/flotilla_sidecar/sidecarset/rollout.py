"""Chooses the pods that are written in this pass (sidecarset.md §7.2, §7.7).

A pass either lets replaced containers idle or updates pods, never both, so that fast changes of the spec do not mix.
Pods that are not ready anyway cost nothing to update, so a broken fleet is repaired regardless of maxUnavailable; and
broken pods that have the newest sidecars already use it up, so broken sidecars stop the rollout.
"""

from collections.abc import Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import UPDATE
from flotilla_common.api.kinds.sidecarset.types import SidecarSetUpdateStrategy
from flotilla_common.api.workload import ScatterTerm
from flotilla_common.control.plan import Chain, Event, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.workload.ordering import scatter, sort_by_priority
from flotilla_common.workload.predicates import default_order_key
from flotilla_sidecar.sidecarset.context import PlanContext
from flotilla_sidecar.sidecarset.pods import pod_state
from flotilla_sidecar.sidecarset.update import idle_chain, unupgradable_chain, update_chain

ANY_VALUE = "*"
"""The value of a scatter term that means each value of the pods."""


class Selection:
    """The pods that this pass updates, and what blocks the next ones."""

    def __init__(self, used: int) -> None:
        self.chains: list[Chain] = []
        self.disturbed: list[Pod] = []  # pods that were ready
        self.unreadable: list[tuple[Pod, str]] = []
        self.used = used  # the used part of maxUnavailable
        self.limited = False  # maxUnavailable is used up


def plan_rollout(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan the writes of pods. The progress of the rollout is explained elsewhere."""
    pods = context.pods
    if not context.updates or context.strategy.paused:
        return
    if pods.idle_due:
        _let_idle(context, builder)
    elif not pods.complete:
        _update(context, builder)


def _let_idle(context: PlanContext, builder: PlanBuilder) -> None:
    due = context.pods.idle_due[:MAX_CHAINS_PER_PASS]
    builder.stage([idle_chain(context, pod, state) for pod, state in due])
    pods = [pod for pod, _ in due]
    text = f"hot upgrade: the replaced containers of {named(pods)} idle from now on"
    builder.reason(State.PROGRESSING, "Resetting", text, pods)


def _update(context: PlanContext, builder: PlanBuilder) -> None:
    pods, targets = context.pods, context.targets
    ordered = update_order(pods.candidates, pods.matching, context.strategy)
    chosen = _choose(context, ordered[: max(len(ordered) - targets.partition, 0)])
    marks = [unupgradable_chain(context, pod) for pod in pods.unmarked[: MAX_CHAINS_PER_PASS - len(chosen.chains)]]
    builder.stage([*chosen.chains, *marks])
    builder.numbers["unavailable"] = chosen.used
    if chosen.chains:
        text = f"updating {pods_word(len(chosen.chains))} to {context.revision_name}"
        builder.reason(State.PROGRESSING, "Updating", text)
    if chosen.limited:
        _explain_limit(context, chosen, builder)
    if chosen.unreadable:
        _explain_unreadable(chosen, builder)
    _report_unupgradable(context, builder)


def _choose(context: PlanContext, ordered: Sequence[Pod]) -> Selection:
    """Choose the first pods, as many as maxUnavailable allows.

    A pod whose annotations cannot be merged is skipped, so that it does not block the others.
    """
    chosen = Selection(len(context.pods.restarting))
    for pod in ordered:
        state = pod_state(pod, context.desired)
        if len(chosen.chains) == MAX_CHAINS_PER_PASS or state is None:
            break
        if state.ready and chosen.used >= context.targets.max_unavailable:
            chosen.limited = True
            break
        try:
            chain = update_chain(context, pod)
        except ValueError as fault:
            chosen.unreadable.append((pod, str(fault)))
            continue
        if not context.disruptions.try_take(pod, UPDATE):
            continue
        chosen.chains.append(chain)
        if state.ready:
            chosen.disturbed.append(pod)
            chosen.used += 1
    return chosen


def _explain_limit(context: PlanContext, chosen: Selection, builder: PlanBuilder) -> None:
    """Name the pods that use up maxUnavailable: not back yet, or disturbed by this pass."""
    blockers = [*chosen.disturbed, *context.pods.restarting]
    limit = f"maxUnavailable {context.targets.max_unavailable}"
    if blockers:
        builder.reason(State.WAITING, "WaitingForMaxUnavailable", f"{limit} is used by {named(blockers)}", blockers)
    else:
        builder.reason(State.STUCK, "WaitingForMaxUnavailable", f"{limit} leaves no room", symptom=True)


def _explain_unreadable(chosen: Selection, builder: PlanBuilder) -> None:
    """Add a reason and an error for unreadable pods."""
    pods = [pod for pod, _ in chosen.unreadable]
    # The error causes retries: repairing such a pod changes nothing that would wake the SidecarSet.
    text = f"{named(pods)} cannot be updated: {chosen.unreadable[0][1]}"
    builder.reason(State.STUCK, "PodUnreadable", text, pods, symptom=True)
    builder.errors.append(("update", text))


def _report_unupgradable(context: PlanContext, builder: PlanBuilder) -> None:
    """Emit an event if there are more such pods, or a new spec, but not in each pass of a rollout."""
    pods, metadata = context.pods, context.sidecar_set.metadata
    if pods.unmarked or (pods.unupgradable and context.sidecar_set.status.observed_generation < metadata.generation):
        number = len(pods.unupgradable)
        message = f"SidecarSet in-place update found {number} not upgradable pod(s) in this round, will skip them"
        builder.events.append(Event("NotUpgradablePods", message))


def update_order(waiting: Sequence[Pod], everyone: Sequence[Pod], strategy: SidecarSetUpdateStrategy) -> list[Pod]:
    """Sort the waiting pods: broken pods first, then by priority, then spread over their labels."""
    ordered = sort_by_priority(sorted(waiting, key=default_order_key), strategy.priority_strategy)
    return scatter(ordered, everyone, expanded(strategy.scatter_strategy, everyone))


def expanded(terms: Sequence[ScatterTerm], everyone: Sequence[Pod]) -> list[ScatterTerm]:
    """Return the terms with each any-value term replaced by one term per value, in the order of the pods."""
    result: list[ScatterTerm] = []
    for term in terms:
        if term.value != ANY_VALUE:
            result.append(term)
            continue
        values = (pod.metadata.labels.get(term.key) for pod in everyone)
        result += [ScatterTerm(key=term.key, value=value) for value in dict.fromkeys(values) if value is not None]
    return list({(term.key, term.value): term for term in result}.values())
