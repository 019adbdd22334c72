"""Plans the scale step: cancel unwanted deletions, create missing pods, delete surplus pods.

A pass makes one kind of change (cloneset.md §4.4): the surge arithmetic of the update step assumes that nothing else
moves. Every function returns whether it planned a write.
"""

from collections.abc import Iterable, Sequence

from flotilla_cloneset.cloneset.claims import delete_claim, instance_id
from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.create import plan_creates
from flotilla_cloneset.cloneset.deletion_order import pods_to_delete
from flotilla_cloneset.cloneset.numbers import Quantities, quantities
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mapping, mappings, text
from flotilla_common.api.kinds.podunavailablebudget.types import DELETE
from flotilla_common.api.resources import POD
from flotilla_common.api.workload import Lifecycle
from flotilla_common.control.plan import Chain, Event, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.control.writes import delete_of
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_NORMAL, hooked, write_state
from flotilla_common.workload.pod_creation import decode_template
from flotilla_common.workload.podedit import PodEdit


def plan_scale(context: PlanContext, builder: PlanBuilder) -> bool:
    """Plan the scale step. Return False if it changes nothing, so that the update step may run."""
    if _cancel(context, builder):
        return True
    numbers = _scaling_numbers(context)
    builder.numbers |= {
        "scaleUp": numbers.scale_up,
        "scaleDown": numbers.scale_down,
        "deleteReady": _ready_budget(context, numbers),
        "useSurge": numbers.use_surge,
    }
    if numbers.scale_up > 0:
        # Pods whose deletion is due may be the very pods that use up scaleStrategy.maxUnavailable.
        return _scale_up(context, numbers, builder) or _finish_deletions(context, builder)
    if _finish_deletions(context, builder):
        return True
    specified = [pod for pod in context.pods.specified if pod.state != PREPARING_DELETE]
    if _delete_within_budget(
        context, specified, builder.numbers["deleteReady"], Intent.DELETE, "specified for deletion", builder
    ):
        return True
    if numbers.scale_down > 0 and _scale_in(context, numbers, builder):
        return True
    return numbers.excess > 0 and _take_back(context, numbers, builder)


def _scaling_numbers(context: PlanContext) -> Quantities:
    snapshot = context.snapshot
    new, old = context.pods.sides(snapshot.gates.on("PreparingUpdateAsUpdate"))
    excluded = snapshot.cloneset.spec.scale_strategy.exclude_preparing_delete
    return quantities(
        context.targets,
        new,
        old,
        rollback=context.rollback,
        exclude_preparing=excluded or snapshot.options.exclude_preparing_delete,
    )


def _ready_budget(context: PlanContext, numbers: Quantities) -> int:
    """Return how many ready pods may be deleted now.

    The formula of §4.3 leaves out unavailable pods that are specified for deletion; they are unavailable all the same,
    so the number of pods actually available bounds it as well (docs/adr/0004).
    """
    really = context.pods.counts.available - (context.targets.replicas - context.targets.max_unavailable)
    return min(numbers.delete_ready, max(really, 0))


def _cancel(context: PlanContext, builder: PlanBuilder) -> bool:
    """Cancel the deletion of pods in PreparingDelete that are needed again."""
    lifecycle = context.snapshot.cloneset.spec.lifecycle or Lifecycle()
    if any(hook and hook.mark_pod_not_ready for hook in (lifecycle.pre_delete, lifecycle.in_place_update)):
        return False
    pods = context.pods
    wanted = context.targets.replicas - len(pods.active) + len(pods.planned)
    candidates = [pod for pod in pods.preparing_delete if pod.metadata.uid not in pods.specified_uids]
    kept = candidates[: max(min(wanted, MAX_CHAINS_PER_PASS), 0)]
    cause = "deletion is no longer wanted"
    chains = [_state_chain(context, pod, PREPARING_NORMAL, Intent.UPDATE, cause, builder) for pod in kept]
    builder.stage(chains)
    if kept:
        text = f"keeping {named(kept)}: the deletion is no longer wanted"
        builder.reason(State.PROGRESSING, "DeletionCancelled", text, kept)
    return bool(kept)


def _scale_up(context: PlanContext, numbers: Quantities, builder: PlanBuilder) -> bool:
    if numbers.create_now < numbers.scale_up:
        limit = context.targets.scale_limit
        text = f"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {numbers.create_now}"
        builder.events.append(Event("ScaleUpLimited", text, warning=True))
        builder.reason(
            State.WAITING,
            "ScaleUpLimited",
            f"{pods_word(numbers.scale_up)} missing, of which {numbers.create_now} may be created now: "
            f"scaleStrategy.maxUnavailable is {limit}, unavailable: {pods_word(numbers.unavailable)}",
        )
    return plan_creates(context, numbers, builder)


def _finish_deletions(context: PlanContext, builder: PlanBuilder) -> bool:
    """Delete the pods in PreparingDelete that their hook has released."""
    lifecycle = context.snapshot.cloneset.spec.lifecycle
    hook = lifecycle.pre_delete if lifecycle else None
    held = [pod for pod in context.pods.preparing_delete if hooked(hook, pod)]
    if held:
        builder.reason(State.HELD, "WaitingForHook", f"the preDelete hook holds {named(held)}", held)
    free = [pod for pod in context.pods.preparing_delete if not hooked(hook, pod)]
    return _delete(context, free, Intent.DELETE, "released by the preDelete hook", builder)


def _scale_in(context: PlanContext, numbers: Quantities, builder: PlanBuilder) -> bool:
    if planned := context.pods.planned:
        text = f"{pods_word(len(planned))} must be deleted first, then {numbers.scale_down} more"
        builder.reason(State.WAITING, "WaitingForDeletion", text)
        return False
    chosen = _most_dispensable(context, context.pods.active, numbers.scale_down, numbers.scale_down_old)
    return _delete_within_budget(
        context, chosen, builder.numbers["deleteReady"], Intent.SCALE_IN, "scale down", builder
    )


def _take_back(context: PlanContext, numbers: Quantities, builder: PlanBuilder) -> bool:
    """Delete pods above replicas + maxSurge when the pods to be replaced cannot be spared yet.

    This happens when maxSurge or replicas were lowered in the middle of a rollout: pods of the old revision serve until
    others do, so pods that do not serve are deleted instead. The rollout creates them again when there is room.
    """
    planned = context.pods.planned
    spare = [pod for pod in context.pods.active if pod.metadata.uid not in planned and context.dispensable(pod)]
    chosen = _most_dispensable(context, spare, numbers.excess, numbers.scale_down_old)
    return _delete(context, chosen, Intent.SCALE_IN, "more than replicas and maxSurge allow", builder)


def _most_dispensable(context: PlanContext, pods: Sequence[Pod], count: int, old_count: int) -> list[Pod]:
    """Choose `count` of the pods, up to `old_count` of them of the old revision (cloneset.md §4.7)."""
    among = {pod.metadata.uid for pod in pods}
    new, old = context.pods.groups(context.snapshot.gates.on("PreparingUpdateAsUpdate"))
    spec = mapping(decode_template(context.snapshot.cloneset.spec.template).get("spec"))
    constraints = mappings(spec.get("topologySpreadConstraints"))
    return pods_to_delete(
        [pod for pod in new if pod.metadata.uid in among],
        [pod for pod in old if pod.metadata.uid in among],
        count,
        old_count,
        unavailable=context.pods.unavailable,
        topology_keys=[text(constraint.get("topologyKey")) for constraint in constraints],
        node_labels=context.snapshot.node_labels,
    )


def _delete_within_budget(
    context: PlanContext, pods: Sequence[Pod], ready_budget: int, intent: Intent, cause: str, builder: PlanBuilder
) -> bool:
    """Delete pods in the given order: dispensable pods freely, the others within the budget."""
    allowed: list[Pod] = []
    waiting: list[Pod] = []
    for pod in pods:
        if not context.dispensable(pod):
            if ready_budget <= 0:
                waiting.append(pod)
                continue
            ready_budget -= 1
        allowed.append(pod)
    if waiting:
        builder.reason(
            State.WAITING,
            "WaitingForDeleteBudget",
            f"{named(waiting)} ({cause}) would be unavailable; "
            f"maxUnavailable {context.targets.max_unavailable} allows to delete {builder.numbers['deleteReady']} "
            f"ready pods now, {len(context.pods.unavailable)} of {len(context.pods.active)} are unavailable",
            waiting,
        )
    return _delete(context, allowed, intent, cause, builder)


def _delete(context: PlanContext, pods: Iterable[Pod], intent: Intent, cause: str, builder: PlanBuilder) -> bool:
    """Delete each pod with its claims, or put it into PreparingDelete while its hook holds it (cloneset.md §4.6)."""
    lifecycle = context.snapshot.cloneset.spec.lifecycle
    hook = lifecycle.pre_delete if lifecycle else None
    chains: list[Chain] = []
    deleted: list[Pod] = []
    for pod in pods:
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        if hooked(hook, pod):
            chains.append(_state_chain(context, pod, PREPARING_DELETE, Intent.HOLD, cause, builder))
        elif pod.metadata.uid not in builder.touched and context.disruptions.try_take(pod, DELETE):
            builder.touch(pod)
            deleted.append(pod)
            chains.append(_delete_chain(context, pod, intent, cause))
    if deleted:
        builder.reason(State.PROGRESSING, "Deleting", f"deleting {named(deleted)}: {cause}", deleted)
    builder.stage(chains)
    return any(chains)


def _state_chain(context: PlanContext, pod: Pod, state: str, intent: Intent, cause: str, builder: PlanBuilder) -> Chain:
    edit = PodEdit(pod, intent, cause, phase="scale")
    write_state(edit, state, context.snapshot.cloneset.spec.lifecycle, context.now)
    if not edit.changed or not builder.touch(pod):
        return ()
    return edit.chain(on_failure=Event("FailedDelete", f"failed to delete pod {pod.metadata.name}: ", warning=True))


def _delete_chain(context: PlanContext, pod: Pod, intent: Intent, cause: str) -> Chain:
    """Delete the pod, then its claims.

    The pod goes first: its claims stay protected while it exists, and a refused deletion must not cost its data. A pod
    that is deleted without budget because it does not serve is deleted at exactly the version read: by now it may be
    serving.
    """
    meta = pod.metadata
    delete = delete_of(
        POD,
        meta,
        intent,
        cause,
        phase="scale",
        on_version=context.dispensable(pod),
        on_success=Event("SuccessfulDelete", f"succeed to delete pod {meta.name}"),
        on_failure=Event("FailedDelete", f"failed to delete pod {meta.name}: ", warning=True),
    )
    identity = instance_id(pod)
    claims = context.claims.of(identity) if identity else ()
    return (delete, *(delete_claim(claim, cause, pods=(meta.name,), phase="scale") for claim in claims))
