"""Plans the update step: which pods change their revision in this pass, and how (cloneset.md §4.8).

Pods are updated in order as long as maxUnavailable allows. A pod that is unavailable anyway costs no budget,
unless it is on the target revision already: so broken old pods are repaired first, and a broken new revision stops the
rollout. A pod is updated in place where that is possible and allowed, else recreated.
"""

from collections.abc import Sequence
from itertools import chain, islice

from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.numbers import Quantities, quantities
from flotilla_cloneset.cloneset.revisions import CODEC, in_place_spec, revision_labels
from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.meta import controller_of
from flotilla_common.control.plan import Chain, Event, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import NAMED, named, pods_word
from flotilla_common.workload.inplace import UpdateRefused, update_in_place
from flotilla_common.workload.inplace.calculate import hindrances_between
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_UPDATE, UPDATED
from flotilla_common.workload.ordering import update_order
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.revision_codec import belongs, short_hash

RECREATE, IN_PLACE_ONLY = "ReCreate", "InPlaceOnly"


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
        changed = _update_pods(context, mine, target, builder)
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


def _update_pods(context: PlanContext, pods: Sequence[Pod], target: ControllerRevision, builder: PlanBuilder) -> bool:
    """Plan the update of each pod to `target`. Return True if anything is written.

    Raises UpdateRefused when a pod cannot be updated as the spec demands; the pods before it are planned.
    """
    history = _history(context)
    chains: list[Chain] = []
    held: list[Pod] = []
    refusal: UpdateRefused | None = None
    for pod in pods:
        try:
            chain = _update(context, pod, history.get(short_hash(pod.revision)), target, builder)
        except UpdateRefused as error:
            refusal = error
            break
        if chain and context.disruptions.try_take_for(pod, chain):
            builder.touch(pod)
            chains.append(chain)
        elif not chain and pod.state == PREPARING_UPDATE:
            held.append(pod)
    builder.stage(chains)
    if chains:
        builder.reason(State.PROGRESSING, "Updating", f"updating {pods_word(len(chains))} to {target.metadata.name}")
    if held:
        builder.reason(State.HELD, "WaitingForHook", f"the inPlaceUpdate hook holds {named(held)}", held)
    if refusal is not None:
        refusal.planned = bool(chains)
        raise refusal
    return bool(chains)


def _history(context: PlanContext) -> dict[str, ControllerRevision]:
    """Return revisions by hash. Own revisions override stray ones: CloneSets of equal templates have equal hashes."""
    uid = context.snapshot.cloneset.metadata.uid
    stray: dict[str, ControllerRevision] = {}
    own: dict[str, ControllerRevision] = {}
    for revision in context.snapshot.revisions:
        controller = controller_of(revision.metadata)
        mine = controller is not None and controller.uid == uid
        (own if mine else stray)[short_hash(revision.metadata.name)] = revision
    return stray | own


def _update(
    context: PlanContext, pod: Pod, old: ControllerRevision | None, target: ControllerRevision, builder: PlanBuilder
) -> Chain:
    policy = context.rolling.pod_update_policy or RECREATE
    if policy == RECREATE:
        return _recreate(pod, target)
    only = policy == IN_PLACE_ONLY
    gates = context.snapshot.gates
    spec = in_place_spec(old, target, gates, ignore_claims=only) if old is not None else None
    if spec is not None:
        strategy = context.rolling.in_place_update_strategy
        return update_in_place(
            pod,
            spec,
            context.in_place,
            revision_labels=revision_labels(target.metadata.name, short=gates.on("CloneSetShortHash")),
            grace_seconds=strategy.grace_period_seconds if strategy else 0,
            deadlines=builder.deadlines,
        )
    if only:
        text = f"find Pod {pod.metadata.name} update strategy is InPlaceOnly but can not update in-place"
        raise UpdateRefused(text, [pod], hindrances_between(CODEC, old, target, gates) if old is not None else "")
    return _recreate(pod, target)


def _recreate(pod: Pod, target: ControllerRevision) -> Chain:
    """Mark the pod; the scale step of a later pass deletes it within the budget and creates its replacement."""
    if keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels:
        return ()
    name, revision = pod.metadata.name, target.metadata.name
    edit = PodEdit(pod, Intent.RECREATE, f"recreate update to {revision}", revision=revision)
    edit.set_labels({keys.SPECIFIED_DELETE_LABEL: "true"})
    return edit.chain(
        on_success=Event(
            "SuccessfulUpdatePodReCreate",
            f"successfully patch pod {name} specified-delete for update(revision {revision})",
        ),
        on_failure=Event(
            "FailedUpdatePodReCreate",
            f"failed to patch pod specified-delete {name} for update(revision {revision}): ",
            warning=True,
        ),
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
