"""Causes in a pod with ready containers that does not count yet.

They are readiness gates, in-place updates that the kubelet has not applied yet, lifecycle hooks without an answer, and
the time that a ready pod has to stay ready.
"""

from collections.abc import Callable

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import IN_PLACE_GRACE, IN_PLACE_READY, LEGACY_IN_PLACE_GRACE, POD_READY
from flotilla_common.api.meta import Condition, later, rfc3339
from flotilla_common.api.workload import LifecycleHook
from flotilla_common.workload.causes.cause import Cause, PodContext
from flotilla_common.workload.causes.text import bare
from flotilla_common.workload.inplace.state import InPlaceState, state_of_update
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_NORMAL, PREPARING_UPDATE, UPDATED
from flotilla_common.workload.readiness import Blocker

_PENDING = {"Infeasible": "ResizeInfeasible", "Deferred": "ResizeDeferred"}
_FOR_EVER = ("Infeasible",)

UNKNOWN = LifecycleHook()
"""The hook of an unknown workload: it exists, but its content is unknown."""

_OURS = {
    IN_PLACE_READY: "the service of its workload sets it",
    POD_READY: "the service of its workload, or else the sidecar service, sets it",
}


def gate_cause(pod: Pod) -> Cause | None:
    """Return the first readiness gate that is not open, if all containers are ready.

    An update closes its own gate for a while only, but holders of KruisePodReady may never release it.
    """
    containers = pod.conditions.get("ContainersReady")
    if pod.ready or containers is None or containers.status != "True":
        return None
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        condition = pod.conditions.get(name)
        if condition is None:
            who = _OURS.get(name, "whoever is to set this condition on the pod has not")
            text = f"readiness gate {name} is not set: {who}"
            return Cause(code="ReadinessGate", message=text, stuck=name not in _OURS)
        if condition.status != "True":
            text = f"readiness gate {name} is {condition.status}{_why(condition)}"
            return Cause(code="ReadinessGate", message=text, stuck=name != IN_PLACE_READY)
    return None


def _why(condition: Condition) -> str:
    if condition.type == POD_READY:
        return f", held by {_holders(condition.message)}"
    told = ": ".join(filter(None, (condition.reason, bare(condition.message))))
    return f": {told}" if told else ""


def _holders(message: str) -> str:
    try:
        holders = read_json(message, list[Blocker])
    except ValueError:
        return bare(message) or "nobody"
    return ", ".join(f"{one.user_agent} ({one.key})" for one in holders) or "nobody"


def ready_soon_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return the cause of a pod that is Ready, but not for minReadySeconds yet."""
    since, least = pod.ready_since, around.min_ready_seconds
    if since is None or not least:
        return None
    until = later(since, least)
    if around.now is None or around.now >= until:
        return None
    text = f"ready, and available after minReadySeconds {least}"
    return Cause(code="MinReadySeconds", message=text, detail=f"at {rfc3339(until)}", stuck=False)


def unready_cause(pod: Pod) -> Cause | None:
    """Return the cause of a pod that is not Ready, if only the condition itself explains it."""
    ready = pod.conditions.get("Ready")
    if pod.ready or pod.status.phase == "Succeeded":
        return None
    told = ": ".join(filter(None, (ready.reason, bare(ready.message)))) if ready is not None else ""
    return Cause(code="NotReady", message=f"it is not Ready{f': {told}' if told else ''}", stuck=False)


def hook_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return the hook that holds a pod before its deletion or update, or after an update."""
    hooks = around.lifecycle
    if pod.state == PREPARING_DELETE:
        return _cause("preDelete", pod, hooks.pre_delete if hooks else UNKNOWN, _left)
    if pod.state == PREPARING_UPDATE:
        return _cause("inPlaceUpdate", pod, hooks.in_place_update if hooks else UNKNOWN, _left)
    if pod.state == UPDATED:
        return _cause("inPlaceUpdate", pod, hooks.in_place_update if hooks else UNKNOWN, _absent)
    return None


def normal_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return the hook that a new pod must get before it counts."""
    hook = around.lifecycle.pre_normal if around.lifecycle else None
    return _cause("preNormal", pod, hook, _absent) if pod.state == PREPARING_NORMAL else None


def _cause(
    name: str, pod: Pod, hook: LifecycleHook | None, obstacles: Callable[[Pod, LifecycleHook], list[str]]
) -> Cause | None:
    if hook is None:
        return None  # the next pass of its workload proceeds
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
    """Return the labels and finalizers of the hook that still hold the pod."""
    meta = pod.metadata
    labels = [f"label {key}={value}" for key, value in hook.labels_handler.items() if meta.labels.get(key) == value]
    return labels + [f"finalizer {one}" for one in hook.finalizers_handler if one in meta.finalizers]


def _absent(pod: Pod, hook: LifecycleHook) -> list[str]:
    """Return the labels and finalizers of the hook that the pod lacks."""
    meta = pod.metadata
    labels = [f"label {key}={value}" for key, value in hook.labels_handler.items() if meta.labels.get(key) != value]
    return labels + [f"finalizer {one}" for one in hook.finalizers_handler if one not in meta.finalizers]


def update_of(pod: Pod) -> InPlaceState | None:
    """Return the recorded state of the pod's last in-place update; None if there is none, or it is not valid."""
    try:
        return state_of_update(pod)
    except ValueError:
        return None


def resize_cause(pod: Pod) -> Cause | None:
    """Return why a resize is pending: resources that the node cannot provide now, or never, or a resize in progress."""
    pending, under_way = pod.conditions.get("PodResizePending"), pod.conditions.get("PodResizeInProgress")
    if pending is not None and pending.status == "True":
        told = f"the kubelet calls the new resources {pending.reason}: {bare(pending.message)}"
        return Cause(
            code=_PENDING.get(pending.reason, "ResizePending"), message=told, stuck=pending.reason in _FOR_EVER
        )
    if under_way is not None and under_way.status == "True":
        told = f": {bare(under_way.message)}" if under_way.message else ""
        stuck = under_way.reason == "Error"
        return Cause(code="ResizeInProgress", message=f"the kubelet is resizing it{told}", stuck=stuck)
    return None


def update_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return why an updated pod is out of service: its grace period, or containers that are not restarted yet."""
    gate = pod.conditions.get(IN_PLACE_READY)
    if gate is None or gate.status == "True":
        return None
    if (resizing := resize_cause(pod)) is not None:
        return resizing
    if IN_PLACE_GRACE in pod.metadata.annotations or LEGACY_IN_PLACE_GRACE in pod.metadata.annotations:
        text = "in the grace period of its in-place update, out of service before containers are restarted"
        return Cause(code="InPlaceGracePeriod", message=text, stuck=False)
    state = update_of(pod)
    names = ", ".join(state.last_container_statuses or ()) if state is not None else ""
    text = f"in-place update: its kubelet has not restarted {f'container {names}' if names else 'what changed'} yet"
    since = state.update_timestamp if state is not None else gate.last_transition_time
    return Cause(code="InPlaceUpdate", message=text, stuck=False, since=since)
