"""In-place updates that the kubelet has not carried out yet."""

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import IN_PLACE_GRACE, IN_PLACE_READY, LEGACY_IN_PLACE_GRACE
from flotilla_common.workload.causes.cause import Around, Cause
from flotilla_common.workload.causes.wording import bare
from flotilla_common.workload.inplace.state import InPlaceState, state_of_update


def update_of(pod: Pod) -> InPlaceState | None:
    """What the pod remembers of its last in-place update; None if nothing that can be read."""
    try:
        return state_of_update(pod)
    except ValueError:
        return None


_PENDING = {"Infeasible": "ResizeInfeasible", "Deferred": "ResizeDeferred"}
_FOR_EVER = ("Infeasible",)


def resize_cause(pod: Pod) -> Cause | None:
    """Resources that the node cannot give now, or ever."""
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


def update_cause(pod: Pod, around: Around) -> Cause | None:
    """Out of service for an update, in its grace period, or until the kubelet has restarted what changed."""
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
