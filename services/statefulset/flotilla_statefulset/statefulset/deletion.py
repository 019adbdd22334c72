"""Deletes pods: those no longer wanted, and pods that other steps replace (statefulset.md §4.7, §4.10).

Unwanted pods are deleted from the highest ordinal down. Where the policy says so, their claims get owner references to
them first: then garbage collection removes both. The user's hook may hold a pod.
"""

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import DELETE
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Event, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named
from flotilla_common.control.writes import delete_of
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_NORMAL, hooked, write_state
from flotilla_common.workload.podedit import PodEdit
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.pods import traits
from flotilla_statefulset.statefulset.status import state_of

CAUSE = "scale down"
PHASE = "delete"


def plan_condemned(context: PlanContext, builder: PlanBuilder) -> bool:
    """Plan the deletion of unwanted pods. Return False if the pass ends here."""
    pods = [(ordinal, context.pods.by_ordinal[ordinal]) for ordinal in context.pods.condemned]
    if not pods:
        return True
    _set_owners_of_leaving(context, pods, builder)
    if not context.targets.ordered:
        _delete(context, [(ordinal, pod) for ordinal, pod in pods if not traits(pod).terminating], builder)
        return True
    # One pod at a time. A pod that is itself unwanted need not become available first.
    highest = pods[0][1]
    if traits(highest).terminating:
        text = f"{state_of(context, highest)}; podManagementPolicy OrderedReady deletes one pod at a time"
        builder.reason(State.WAITING, "WaitingForTermination", text, [highest])
    else:
        _delete(context, pods[:1], builder)
    return False


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


def is_held(context: PlanContext, pod: Pod) -> bool:
    """Report whether the preDelete hook holds the pod."""
    lifecycle = context.statefulset.spec.lifecycle
    return hooked(lifecycle.pre_delete if lifecycle else None, pod)


def delete_chain(
    context: PlanContext, pod: Pod, intent: Intent, cause: str, *, revision: str = "", before: Chain = ()
) -> Chain:
    """Delete the pod after the writes `before`, or put it into PreparingDelete once while the hook holds it.

    The chain is empty while a budget protects the pod. A pod that is not healthy may be deleted out of turn, so it is
    deleted at exactly the version read: by now it may be serving.
    """
    if is_held(context, pod):
        return _state_chain(context, pod, PREPARING_DELETE, Intent.HOLD, cause)
    if not context.disruptions.try_take(pod, DELETE):
        return ()
    meta = pod.metadata
    action = f"delete Pod {meta.name} in StatefulSet {context.statefulset.metadata.name}"
    delete = delete_of(
        POD,
        meta,
        intent,
        cause,
        revision=revision,
        phase=PHASE,
        on_version=not traits(pod).healthy,
        on_success=Event("SuccessfulDelete", f"{action} successful"),
        on_failure=tuple(
            Event("FailedDelete", message, warning=True)
            for message in (f"{action} failed error: ", f"failed to delete pod {meta.name}: ")
        ),
    )
    return (*before, delete)


def recreate_chain(context: PlanContext, pod: Pod) -> Chain:
    """Delete the pod, so that a pod of the update revision replaces it."""
    revision = context.update_name
    return delete_chain(context, pod, Intent.RECREATE, f"recreate update to {revision}", revision=revision)


def keep_chain(context: PlanContext, pod: Pod) -> Chain:
    """Cancel the deletion of a pod in PreparingDelete that is needed after all."""
    return _state_chain(context, pod, PREPARING_NORMAL, Intent.UPDATE, "deletion is no longer wanted")


def _state_chain(context: PlanContext, pod: Pod, state: str, intent: Intent, cause: str) -> Chain:
    edit = PodEdit(pod, intent, cause, phase=PHASE)
    write_state(edit, state, context.statefulset.spec.lifecycle, context.now)
    return edit.chain() if edit.changed else ()
