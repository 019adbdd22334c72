"""Causes of running pods that are not ready, or do not count yet.

They are failing probes, readiness gates, in-place updates that the kubelet has not applied yet, lifecycle hooks without
an answer, and the time that a ready pod has to stay ready. Results of probes are in events only; without them the probe
itself is shown.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from flotilla_common.api.core import Container, ContainerStatus, Pod, Probe, TerminatedState
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import IN_PLACE_GRACE, IN_PLACE_READY, LEGACY_IN_PLACE_GRACE, POD_READY
from flotilla_common.api.meta import Condition, later, rfc3339
from flotilla_common.api.workload import LifecycleHook
from flotilla_common.workload.causes.cause import Cause, PodContext, about, bare, restarts_word
from flotilla_common.workload.inplace.state import InPlaceState, state_of_update
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_NORMAL, PREPARING_UPDATE, UPDATED
from flotilla_common.workload.readiness import Blocker

_FAILED = (" probe failed: ", " probe errored and resulted in unknown state: ", " probe errored: ", " probe warning: ")

WITHIN = timedelta(seconds=35)
"""Time from a kubelet's event about ending a container to its end: the usual grace period and clock differences."""

LONG_WITHIN = timedelta(hours=1)
"""Like WITHIN, for loops: kubelets drop events that repeat too fast, so the only event of a loop may be old."""

_CODES = {"Liveness": "LivenessProbeFailed", "Readiness": "ReadinessProbeFailed", "Startup": "StartupProbeFailed"}

HARMLESS = (0, 137, 143)
"""Exit codes of containers that were asked to end, and of killed ones, which show no other cause."""


def probe_result(kind: str, container: str, around: PodContext, since: datetime | None = None) -> str:
    """Return the output of the container's last failed probe of the `kind`; empty if none failed.

    Kinds are Readiness, Liveness and Startup.
    """
    for event in about(around.events, "Unhealthy", "ProbeWarning", container=container, since=since):
        for words in _FAILED:
            if event.message.startswith(kind + words):
                return bare(event.message.removeprefix(kind + words)) or "it gave no reason"
    return ""


def restart_cause(name: str, status: ContainerStatus, end: TerminatedState, around: PodContext) -> Cause | None:
    """Return why the kubelet ended the container: a probe or its postStart hook failed. Only events show that."""
    within = LONG_WITHIN if end.exit_code in HARMLESS and end.reason != "OOMKilled" else WITHIN
    since = end.finished_at - within if end.finished_at is not None else None
    for event in about(around.events, "Killing", "FailedPostStartHook", container=status.name, since=since):
        if "PostStartHook" in event.message:
            text = f"{name} is stopped each time, its postStart hook fails{_more(event.message)}"
            return Cause(code="PostStartHookError", message=text, detail=restarts_word(status.restart_count))
        for kind in ("Liveness", "Startup"):
            if f"failed {kind.lower()} probe" in event.message:
                told = probe_result(kind, status.name, around)
                text = f"{name} is restarted, its {kind.lower()} probe fails{f': {told}' if told else ''}"
                return Cause(code=_CODES[kind], message=text, detail=restarts_word(status.restart_count))
    return None


def _more(message: str) -> str:
    """Return the part of an event's message beyond the failure of the hook."""
    return "" if message in ("PostStartHook failed", "FailedPostStartHook") else f": {bare(message)}"


def probe_cause(name: str, spec: Container | None, status: ContainerStatus, around: PodContext) -> Cause | None:
    """Return why a container that runs is not ready."""
    running = status.state.running
    since = running.started_at if running is not None else None
    if status.started is False and spec is not None and spec.startup_probe is not None:
        return _failing("Startup", name, spec.startup_probe, status, around, since)
    if spec is not None and spec.readiness_probe is not None:
        return _failing("Readiness", name, spec.readiness_probe, status, around, since)
    text = f"{name} runs, and its kubelet has not reported it ready yet"
    return Cause(code="Starting", message=text, stuck=False, since=since)


def _failing(
    kind: str, name: str, probe: Probe, status: ContainerStatus, around: PodContext, since: datetime | None
) -> Cause:
    asked, told = _question(probe), probe_result(kind, status.name, around, since)
    liveness = probe_result("Liveness", status.name, around, since) if kind == "Readiness" else ""
    if told:
        more = f"; its liveness probe fails, too: {liveness}" if liveness else ""
        return Cause(
            code=_CODES[kind], message=f"{name} fails its {kind.lower()} probe {asked}: {told}{more}", since=since
        )
    text = f"{name} runs, and its {kind.lower()} probe {asked} has not succeeded yet"
    return Cause(code=_CODES[kind], message=text, stuck=False, since=since)


def _question(probe: Probe) -> str:
    """Return the request of the probe, such as "(GET /healthz on port 80)"."""
    if probe.http_get is not None:
        return f"(GET {probe.http_get.path or '/'} on port {probe.http_get.port})"
    if probe.exec is not None:
        return f"({bare(' '.join(probe.exec.command))})"
    if probe.tcp_socket is not None:
        return f"(TCP port {probe.tcp_socket.port})"
    return f"(gRPC port {probe.grpc.port})" if probe.grpc is not None else ""


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
