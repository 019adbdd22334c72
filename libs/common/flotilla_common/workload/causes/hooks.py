"""Lifecycle hooks that nobody has answered: which label or finalizer is still there, or is missing."""

from collections.abc import Callable

from flotilla_common.api.core import Pod
from flotilla_common.api.rollout import LifecycleHook
from flotilla_common.workload.causes.cause import Around, Cause
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_NORMAL, PREPARING_UPDATE, UPDATED


def hook_cause(pod: Pod, around: Around) -> Cause | None:
    """The hook that holds a pod on its way out, into an update, or back from one."""
    hooks = around.lifecycle
    if pod.state == PREPARING_DELETE:
        return _cause("preDelete", pod, hooks.pre_delete if hooks else UNKNOWN, _left)
    if pod.state == PREPARING_UPDATE:
        return _cause("inPlaceUpdate", pod, hooks.in_place_update if hooks else UNKNOWN, _left)
    if pod.state == UPDATED:
        return _cause("inPlaceUpdate", pod, hooks.in_place_update if hooks else UNKNOWN, _absent)
    return None


def normal_cause(pod: Pod, around: Around) -> Cause | None:
    """The hook that a new pod must get before it counts."""
    hook = around.lifecycle.pre_normal if around.lifecycle else None
    return _cause("preNormal", pod, hook, _absent) if pod.state == PREPARING_NORMAL else None


UNKNOWN = LifecycleHook()
"""Where the workload is not known: there is a hook, but not what it consists of."""


def _cause(
    name: str, pod: Pod, hook: LifecycleHook | None, obstacles: Callable[[Pod, LifecycleHook], list[str]]
) -> Cause | None:
    if hook is None:
        return None  # the next pass of its workload goes on with it
    verb = "put on" if obstacles is _absent else "take off"
    if hook is UNKNOWN:
        what = "the hook's label or finalizer"
    elif found := obstacles(pod, hook):
        what = " and ".join(found)
    else:
        return None
    text = f"{pod.state}: nobody has answered the {name} hook: whoever is to answer it has to {verb} {what}"
    return Cause(code="WaitingForHook", message=text)


def _left(pod: Pod, hook: LifecycleHook) -> list[str]:
    """What of the hook still holds the pod."""
    meta = pod.metadata
    labels = [f"label {key}={value}" for key, value in hook.labels_handler.items() if meta.labels.get(key) == value]
    return labels + [f"finalizer {one}" for one in hook.finalizers_handler if one in meta.finalizers]


def _absent(pod: Pod, hook: LifecycleHook) -> list[str]:
    """What of the hook the pod has not got."""
    meta = pod.metadata
    labels = [f"label {key}={value}" for key, value in hook.labels_handler.items() if meta.labels.get(key) != value]
    return labels + [f"finalizer {one}" for one in hook.finalizers_handler if one not in meta.finalizers]
