"""Deletes a pod, or holds it while the user's hook requires it (statefulset.md §4.10)."""

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import DELETE
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Event, Intent
from flotilla_common.control.writes import delete_of
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_NORMAL, hooked, write_state
from flotilla_common.workload.podedit import PodEdit
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.pods import traits

PHASE = "delete"


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
    if not context.disruptions.may(pod, DELETE):
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
