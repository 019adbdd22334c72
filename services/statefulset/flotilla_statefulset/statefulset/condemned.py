"""Deletes pods that are no longer wanted, the highest ordinal first (statefulset.md §4.7).

Where the policy says so, their claims get owner references to them first: then garbage collection removes both.
"""

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Chain, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.delete import delete_chain, is_held
from flotilla_statefulset.statefulset.pods import traits
from flotilla_statefulset.statefulset.why import state_of

CAUSE = "scale down"


def plan_condemned(context: PlanContext, builder: PlanBuilder) -> bool:
    """Plan the deletion of unwanted pods. Return False if the pass ends here."""
    pods = [(ordinal, context.pods.by_ordinal[ordinal]) for ordinal in context.pods.condemned]
    if not pods:
        return True
    _set_owners_of_leaving(context, pods, builder)
    if context.targets.ordered:
        _one(context, pods, builder)
        return False
    _all(context, pods, builder)
    return True


def _one(context: PlanContext, pods: list[tuple[int, Pod]], builder: PlanBuilder) -> None:
    """Delete the highest pod (OrderedReady), once the one before it is gone and all that stay are available.

    A pod that is itself unwanted need not become available first.
    """
    ordinal, pod = pods[0]
    if traits(pod).terminating:
        text = f"{state_of(context, pod)}; podManagementPolicy OrderedReady deletes one pod at a time"
        builder.reason(State.WAITING, "WaitingForTermination", text, [pod])
    else:
        _delete(context, [(ordinal, pod)], builder)


def _all(context: PlanContext, pods: list[tuple[int, Pod]], builder: PlanBuilder) -> None:
    """Delete all pods that are not terminating yet (Parallel)."""
    _delete(context, [(ordinal, pod) for ordinal, pod in pods if not traits(pod).terminating], builder)


def _delete(context: PlanContext, pods: list[tuple[int, Pod]], builder: PlanBuilder) -> None:
    held = [pod for _, pod in pods if is_held(context, pod)]
    chains: list[Chain] = []
    going: list[Pod] = []
    for ordinal, pod in pods:
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        chain = delete_chain(context, pod, Intent.SCALE_IN, CAUSE, before=_owner_patches(context, ordinal, pod))
        if chain and builder.touch(pod):
            chains.append(chain)
            going += [pod] * (pod not in held)
    if held:
        builder.reason(State.HELD, "WaitingForHook", f"the preDelete hook holds {named(held)}", held)
    if going:
        builder.reason(State.PROGRESSING, "Deleting", f"deleting {named(going)}: {CAUSE}", going)
    builder.stage(chains, slow_start=1 if len(chains) > 1 else 0)


def _set_owners_of_leaving(context: PlanContext, pods: list[tuple[int, Pod]], builder: PlanBuilder) -> None:
    """Plan owner references for the claims of unwanted pods that were deleted from outside."""
    leaving = [(ordinal, pod) for ordinal, pod in pods if traits(pod).terminating]
    builder.stage(
        [patches for ordinal, pod in leaving if (patches := _owner_patches(context, ordinal, pod))],
        stop_on_failure=False,
    )


def _owner_patches(context: PlanContext, ordinal: int, pod: Pod) -> Chain:
    claims = context.claims
    wrongly_owned = claims.wrongly_owned(ordinal, pod, scaled_away=True)
    return tuple(claims.set_owner(claim, pod, scaled_away=True) for claim in wrongly_owned)
