"""The scale step: cancel deletions that are not wanted any more, create what is missing, delete what is too much.

One kind of change per pass (cloneset.md §4.4): the surge arithmetic of the update step assumes that nothing else
moves. Every function returns whether it planned a write.
"""

from collections.abc import Iterable, Sequence

from flotilla_cloneset.cloneset.bodies import decode_template
from flotilla_cloneset.cloneset.choose import choose
from flotilla_cloneset.cloneset.claims import delete_claim, instance_id
from flotilla_cloneset.cloneset.create import plan_creates
from flotilla_cloneset.cloneset.draft import MAX_CHAINS_PER_PASS, Draft, named, pods_word
from flotilla_cloneset.cloneset.numbers import Quantities, quantities
from flotilla_cloneset.cloneset.situation import Situation
from flotilla_common.api.cloneset import Lifecycle
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mapping, mappings, text
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Delete, Notice
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_NORMAL, hooked, write_state
from flotilla_common.workload.podedit import PodEdit


def plan_scale(here: Situation, draft: Draft) -> bool:
    """Plan the scale step. False when it changes nothing, so that the update step may run."""
    if _cancel(here, draft):
        return True
    numbers = _scaling_numbers(here)
    draft.numbers |= {
        "scaleUp": numbers.scale_up,
        "scaleDown": numbers.scale_down,
        "deleteReady": _ready_budget(here, numbers),
        "useSurge": numbers.use_surge,
    }
    if numbers.scale_up > 0:
        # Pods whose deletion is due may be the very ones that use up scaleStrategy.maxUnavailable.
        return _scale_up(here, numbers, draft) or _finish_deletions(here, draft)
    if _finish_deletions(here, draft):
        return True
    census = here.census
    specified = [pod for pod in census.specified if pod.state != PREPARING_DELETE]
    if _delete_within_budget(here, specified, draft.numbers["deleteReady"], "specified for deletion", draft):
        return True
    return numbers.scale_down > 0 and _scale_in(here, numbers, draft)


def _scaling_numbers(here: Situation) -> Quantities:
    snapshot = here.snapshot
    new, old = here.census.sides(snapshot.gates.on("PreparingUpdateAsUpdate"))
    excluded = snapshot.cloneset.spec.scale_strategy.exclude_preparing_delete
    return quantities(
        here.targets,
        new,
        old,
        rollback=here.rollback,
        exclude_preparing=excluded or snapshot.options.exclude_preparing_delete,
    )


def _ready_budget(here: Situation, numbers: Quantities) -> int:
    """How many ready pods may be deleted now.

    The formula of §4.3 leaves out unavailable pods that are specified for deletion; they are no less unavailable, so
    what is really there bounds it as well (docs/adr/0004).
    """
    really = here.census.counts.available - (here.targets.replicas - here.targets.max_unavailable)
    return min(numbers.delete_ready, max(really, 0))


def _cancel(here: Situation, draft: Draft) -> bool:
    """Bring pods back that wait in PreparingDelete but are wanted again."""
    lifecycle = here.snapshot.cloneset.spec.lifecycle or Lifecycle()
    if any(hook and hook.mark_pod_not_ready for hook in (lifecycle.pre_delete, lifecycle.in_place_update)):
        return False
    census = here.census
    wanted = here.targets.replicas - len(census.active) + len(census.planned)
    candidates = [pod for pod in census.preparing_delete if pod.metadata.uid not in census.specified_uids]
    kept = candidates[: max(min(wanted, MAX_CHAINS_PER_PASS), 0)]
    chains = [_state_chain(here, pod, PREPARING_NORMAL, "deletion is no longer wanted", draft) for pod in kept]
    draft.stage(chains)
    if kept:
        draft.reason("DeletionCancelled", f"keeping {named(kept)}: the deletion is no longer wanted", kept)
    return bool(kept)


def _scale_up(here: Situation, numbers: Quantities, draft: Draft) -> bool:
    if numbers.create_now < numbers.scale_up:
        limit = here.targets.scale_limit
        text = f"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {numbers.create_now}"
        draft.notices.append(Notice(reason="ScaleUpLimited", message=text, warning=True))
        draft.reason(
            "ScaleUpLimited",
            f"missing: {pods_word(numbers.scale_up)}, of which {numbers.create_now} may be created now: "
            f"scaleStrategy.maxUnavailable is {limit}, unavailable: {pods_word(numbers.unavailable)}",
        )
    return plan_creates(here, numbers, draft)


def _finish_deletions(here: Situation, draft: Draft) -> bool:
    """Delete the pods in PreparingDelete whose hook let go."""
    lifecycle = here.snapshot.cloneset.spec.lifecycle
    hook = lifecycle.pre_delete if lifecycle else None
    held = [pod for pod in here.census.preparing_delete if hooked(hook, pod)]
    if held:
        draft.reason("WaitingForHook", f"waiting: the preDelete hook holds {named(held)}", held)
    free = [pod for pod in here.census.preparing_delete if not hooked(hook, pod)]
    return _delete(here, free, "preDelete hook let go", draft)


def _scale_in(here: Situation, numbers: Quantities, draft: Draft) -> bool:
    census = here.census
    planned = census.planned
    if planned:
        draft.reason(
            "WaitingForDeletion",
            f"waiting: {pods_word(len(planned))} must be deleted first, then {numbers.scale_down} more",
        )
        return False
    new, old = census.groups(here.snapshot.gates.on("PreparingUpdateAsUpdate"))
    spec = mapping(decode_template(here.snapshot.cloneset.spec.template).get("spec"))
    constraints = mappings(spec.get("topologySpreadConstraints"))
    chosen = choose(
        new,
        old,
        numbers.scale_down,
        numbers.scale_down_old,
        unavailable=census.unavailable,
        topology_keys=[text(constraint.get("topologyKey")) for constraint in constraints],
        node_labels=here.snapshot.node_labels,
    )
    return _delete_within_budget(here, chosen, draft.numbers["deleteReady"], "scale down", draft)


def _delete_within_budget(here: Situation, pods: Sequence[Pod], ready_budget: int, cause: str, draft: Draft) -> bool:
    """Delete pods in the given order: not-ready ones freely, ready ones as far as the budget reaches."""
    allowed: list[Pod] = []
    waiting: list[Pod] = []
    for pod in pods:
        if here.serviceable(pod):
            if ready_budget <= 0:
                waiting.append(pod)
                continue
            ready_budget -= 1
        allowed.append(pod)
    if waiting:
        draft.reason(
            "WaitingForDeleteBudget",
            f"waiting: {named(waiting)} ({cause}) would be unavailable; "
            f"maxUnavailable {here.targets.max_unavailable} allows to delete {draft.numbers['deleteReady']} "
            f"ready pods now, {len(here.census.unavailable)} of {len(here.census.active)} are unavailable",
            waiting,
        )
    return _delete(here, allowed, cause, draft)


def _delete(here: Situation, pods: Iterable[Pod], cause: str, draft: Draft) -> bool:
    """Delete each pod with its claims, or put it into PreparingDelete while its hook holds it (cloneset.md §4.6)."""
    lifecycle = here.snapshot.cloneset.spec.lifecycle
    hook = lifecycle.pre_delete if lifecycle else None
    chains: list[Chain] = []
    deleted: list[Pod] = []
    for pod in pods:
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        if hooked(hook, pod):
            chains.append(_state_chain(here, pod, PREPARING_DELETE, cause, draft))
        elif draft.touch(pod):
            deleted.append(pod)
            chains.append(_delete_chain(here, pod, cause))
    if deleted:
        draft.reason("Deleting", f"deleting {named(deleted)}: {cause}", deleted)
    draft.stage(chains)
    return any(chains)


def _state_chain(here: Situation, pod: Pod, state: str, cause: str, draft: Draft) -> Chain:
    edit = PodEdit(pod, cause, phase="scale")
    write_state(edit, state, here.snapshot.cloneset.spec.lifecycle, here.now)
    if not edit.changed or not draft.touch(pod):
        return ()
    return edit.chain(
        on_failure=Notice(reason="FailedDelete", message=f"failed to delete pod {pod.metadata.name}: ", warning=True)
    )


def _delete_chain(here: Situation, pod: Pod, cause: str) -> Chain:
    """The pod first: its claims stay protected while it exists, and a refused deletion must not cost its data.

    A pod that is deleted without budget because it is not ready is deleted at exactly the version that said so: on a
    view that is behind, it may be serving by now.
    """
    meta = pod.metadata
    delete = Delete(
        resource=POD,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version="" if here.serviceable(pod) else meta.resource_version,
        cause=cause,
        phase="scale",
        on_success=Notice(reason="SuccessfulDelete", message=f"succeed to delete pod {meta.name}"),
        on_failure=Notice(reason="FailedDelete", message=f"failed to delete pod {meta.name}: ", warning=True),
    )
    identity = instance_id(pod)
    claims = here.claims.of(identity) if identity else ()
    return (delete, *(delete_claim(claim, cause) for claim in claims))
