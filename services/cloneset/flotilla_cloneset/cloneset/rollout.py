"""Plans the update step: which pods change their revision in this pass, and how (cloneset.md §4.8).

Pods are updated in order as long as maxUnavailable allows. A pod that is unavailable anyway costs no budget,
unless it is on the target revision already: so broken old pods are repaired first, and a broken new revision stops the
rollout.
"""

from collections.abc import Sequence
from itertools import chain, islice

from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.numbers import Quantities, quantities
from flotilla_cloneset.cloneset.podupdate import plan_pod_updates
from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import NAMED, named, pods_word
from flotilla_common.workload.inplace import UpdateRefused
from flotilla_common.workload.lifecycle import PREPARING_DELETE, UPDATED
from flotilla_common.workload.ordering import update_order
from flotilla_common.workload.revision_codec import belongs


def update_numbers(context: PlanContext) -> Quantities:
    """Return the numbers of the update step, which classifies pods by their revision label alone."""
    new, old = context.pods.sides(preparing_update_is_new=False)
    return quantities(context.targets, new, old, rollback=context.rollback, exclude_preparing=False)


def direction(context: PlanContext, numbers: Quantities) -> int:
    """Return where pods move: 1 to the update revision, -1 back to the current one, 0 nowhere."""
    if context.targets.on_delete or context.targets.paused:
        return 0
    return (numbers.update > 0) - (numbers.update < 0)


def plan_update(context: PlanContext, numbers: Quantities, builder: PlanBuilder) -> bool:
    """Plan the update step. Return True if it changes anything."""
    builder.numbers |= {"updateNum": numbers.update, "budget": numbers.update_budget}
    if _nothing_to_update(context, numbers, builder):
        return False
    backwards = numbers.update < 0
    target = context.revisions.current if backwards else context.revisions.update
    pool = context.pods.new if backwards else context.pods.old
    rolling = context.rolling
    waiting = [pod for pod in pool if _may_start(pod)]
    everyone, priority, scatter = context.pods.active, rolling.priority_strategy, rolling.scatter_strategy
    ordered = update_order(waiting, everyone, priority, scatter, context.mainstay)
    head = ordered[: abs(numbers.update)]
    chosen = _within_budget(context, head, target, numbers.update_budget)
    mine = [pod for pod in chosen if pod.metadata.uid not in builder.touched][:MAX_CHAINS_PER_PASS]
    try:
        changed = plan_pod_updates(context, mine, target, builder)
    except UpdateRefused as error:
        builder.errors.append(("update", str(error)))
        builder.reason(State.STUCK, "InPlaceImpossible", error.explained, error.pods)
        return bool(error.planned)  # regardless of the limits, this refusal blocks the rollout
    if len(chosen) < len(head):
        _explain_blockers(context, numbers, chosen, builder)
    return changed


def _nothing_to_update(context: PlanContext, numbers: Quantities, builder: PlanBuilder) -> bool:
    """Report whether no pod needs an update; if so, add the reason."""
    counts, want = context.pods.counts, context.targets
    if want.on_delete:
        outdated = counts.replicas - counts.updated
        if outdated:
            text = f"{pods_word(outdated)} of older revisions must be deleted manually: type is OnDelete"
            builder.reason(State.HELD, "OnDelete", text)
        return True
    if want.paused:
        text = f"paused by the user: {counts.updated} of {pods_word(want.expected_updated)} updated"
        builder.reason(State.HELD, "PausedByUser", text)
        return True
    if numbers.update != 0:
        return False
    if context.pods.preparing_update:
        pods = context.pods.preparing_update
        text = f"{named(pods)} prepared for an update that partition now excludes"
        builder.reason(State.HELD, "PreparedInVain", text, pods)
    if counts.updated == counts.replicas == want.replicas:
        missing = counts.replicas - counts.updated_available
        done = f"{counts.updated} of {pods_word(counts.replicas)} updated"
        if missing:
            text = f"{done}, {counts.updated_available} of them available"
            builder.reason(State.WAITING, "WaitingForAvailability", text)
        else:
            builder.reason(State.DONE, "Complete", f"{done}, all available")
    elif counts.updated >= want.expected_updated and want.partition:
        builder.reason(
            State.HELD,
            "PartitionReached",
            f"{counts.updated} of {pods_word(counts.replicas)} updated, partition {want.partition} keeps the other "
            f"{counts.replicas - counts.updated} on older revisions",
        )
    return True


def _may_start(pod: Pod) -> bool:
    """Report whether the pod is neither being deleted nor in the grace period of another update."""
    if pod.state == PREPARING_DELETE:
        return False
    annotations = pod.metadata.annotations
    if not annotations:
        return True
    grace = annotations.get(keys.IN_PLACE_GRACE) or annotations.get(keys.LEGACY_IN_PLACE_GRACE)
    return not grace or pod.state == UPDATED


def _within_budget(context: PlanContext, head: Sequence[Pod], target: ControllerRevision, budget: int) -> list[Pod]:
    """Return the first pods, as many as the budget allows (cloneset.md §4.8 step 6)."""
    unavailable = context.pods.unavailable
    used = len(unavailable)
    stuck = _unavailable_on(context, target)
    chosen: list[Pod] = []
    for pod in head:
        if stuck + len(chosen) >= budget:
            break
        if pod.metadata.uid not in unavailable:
            if used >= budget:
                break
            used += 1
        chosen.append(pod)
    return chosen


def _unavailable_on(context: PlanContext, target: ControllerRevision) -> int:
    counts = context.pods.counts
    if target.metadata.name == context.revisions.update.metadata.name:
        return counts.updated - counts.updated_available
    unavailable = context.pods.unavailable
    return sum(
        pod.metadata.uid in unavailable and belongs(pod.revision, target.metadata.name) for pod in context.pods.old
    )


def _explain_blockers(context: PlanContext, numbers: Quantities, chosen: Sequence[Pod], builder: PlanBuilder) -> None:
    """Name the pods that use up the budget: pods that are, or in this pass become, unavailable."""
    unavailable = context.pods.unavailable
    starting = [pod for pod in chosen if pod.metadata.uid not in unavailable]
    down = (pod for pod in context.pods.active if pod.metadata.uid in unavailable)
    blockers = list(islice(chain(starting, down), NAMED))
    limit = f"maxUnavailable {context.targets.max_unavailable}"
    extra = numbers.update_budget - context.targets.max_unavailable
    if extra > 0:
        limit += f" (plus {extra} above replicas)"
    elif extra < 0:
        limit += f" (minus {-extra} missing)"
    used = f"is used by {named(blockers, len(starting) + len(unavailable))}" if blockers else "leaves no room"
    if blockers or extra < 0:  # missing pods are about to be created, or another reason explains why not
        builder.reason(State.WAITING, "WaitingForMaxUnavailable", f"{limit} {used}", blockers)
    else:
        builder.reason(State.STUCK, "WaitingForMaxUnavailable", f"{limit} {used}", symptom=True)
