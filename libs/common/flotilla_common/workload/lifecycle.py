"""Lifecycle states of pods, and the hooks that hold them (common.md §8).

A state is a label with a time beside it. Entering or leaving some states also marks the pod NotReady, or releases it.
"""

from collections.abc import Iterator
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import STATE_LABEL, STATE_TIME_ANNOTATION
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.workload import Lifecycle, LifecycleHook
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import Blocker, add_blocker, remove_blocker

PREPARING_NORMAL = "PreparingNormal"  # created, cannot be available yet
NORMAL = "Normal"
PREPARING_UPDATE = "PreparingUpdate"  # waits for the user to remove the hook
UPDATING = "Updating"
UPDATED = "Updated"  # waits for the user to restore the hook
PREPARING_DELETE = "PreparingDelete"  # waits for the user to remove the hook

PRE_DELETE_HOLDER = Blocker("Lifecycle", "preDeleteHook")
PRE_UPDATE_HOLDER = Blocker("Lifecycle", "preUpdateHook")


def hooked(hook: LifecycleHook | None, pod: Pod) -> bool:
    """Return whether at least one of the hook's labels or finalizers holds the pod."""
    return hook is not None and any(_found(hook, pod))


def fully_hooked(hook: LifecycleHook | None, pod: Pod) -> bool:
    """Return whether all of the hook's labels and finalizers are there: False without a hook, True for an empty one."""
    return hook is not None and all(_found(hook, pod))


def write_state(edit: PodEdit, state: str, lifecycle: Lifecycle | None, now: datetime, *, rehook: bool = False) -> None:
    """Put the pod into `state`, with its time, KruisePodReady marks, and hook labels (`rehook`).

    The marks may change even if the state does not (§8.3).
    """
    _mark(edit, state, lifecycle, now)
    if edit.label(STATE_LABEL) == state:
        return
    edit.set_labels({STATE_LABEL: state})
    edit.set_annotations(state_annotations(now))
    if rehook and lifecycle is not None and lifecycle.in_place_update is not None:
        edit.set_labels(lifecycle.in_place_update.labels_handler)
        edit.add_finalizers(lifecycle.in_place_update.finalizers_handler)


def initial_labels(state: str = PREPARING_NORMAL) -> dict[str, str]:
    """Return the labels of a pod that is about to be created."""
    return {STATE_LABEL: state}


def state_annotations(now: datetime) -> dict[str, str]:
    """Return the annotations of a state that is written at `now`."""
    return {STATE_TIME_ANNOTATION: rfc3339(now)}


def _found(hook: LifecycleHook, pod: Pod) -> Iterator[bool]:
    """Yield for each of the hook's finalizers and labels whether the pod has it."""
    yield from (finalizer in pod.metadata.finalizers for finalizer in hook.finalizers_handler)
    yield from (pod.metadata.labels.get(key) == value for key, value in hook.labels_handler.items())


def _mark(edit: PodEdit, state: str, lifecycle: Lifecycle | None, now: datetime) -> None:
    """Set marks as the hook asks, but always withdraw them, so that a changed hook leaves no pod NotReady."""
    if state == PREPARING_DELETE:
        if lifecycle and lifecycle.pre_delete and lifecycle.pre_delete.mark_pod_not_ready:
            add_blocker(edit, PRE_DELETE_HOLDER, now)
    elif state == PREPARING_UPDATE:
        if lifecycle and lifecycle.in_place_update and lifecycle.in_place_update.mark_pod_not_ready:
            add_blocker(edit, PRE_UPDATE_HOLDER, now)
    elif state in (UPDATED, NORMAL):
        remove_blocker(edit, PRE_UPDATE_HOLDER, now)
    elif state == PREPARING_NORMAL:
        remove_blocker(edit, PRE_DELETE_HOLDER, now)
