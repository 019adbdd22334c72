"""The results of probes: in the status of the NodePodProbe, and in conditions, labels and annotations of its pods.

The status is computed from the reports of the node's agent (nodeagent.md §6.4), without results of probes that are not
in the spec; the marks of pods follow from it (podprobemarker.md §6).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.nodepodprobe.types import (
    FAILED,
    MESSAGE_BYTES,
    MESSAGES_BYTES,
    SUCCEEDED,
    UNKNOWN,
    NodePodProbe,
    NodePodProbeStatus,
    PodProbeStatus,
    ProbeState,
    split,
)
from flotilla_common.api.kinds.podprobemarker.types import ContainerProbe, MarkerPolicy, PodProbeMarker
from flotilla_common.api.meta import later, rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Intent, Patch, PatchType
from flotilla_common.control.text import named
from flotilla_common.control.writes import patch_of

STATES = frozenset({SUCCEEDED, FAILED, UNKNOWN})

AHEAD = timedelta(minutes=1)
"""The tolerated clock skew of a node. A time further in the future is not accepted."""

NATIVE_TYPES = frozenset(
    {
        *("PodScheduled", "Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers"),
        *("DisruptionTarget", "PodResizePending", "PodResizeInProgress", "AllContainersRestarting"),
        *("KruisePodReady", "InPlaceUpdateReady"),
    }
)
"""Conditions of the kubelet and other controllers. No result is written there: writers would alternate."""


def report_problem(report: NodePodProbeStatus) -> str:
    """Return why the report cannot be a status; empty if it can."""
    for pod in report.pod_probe_statuses:
        for state in pod.probe_states:
            if state.state not in STATES:
                return f"{pod.namespace}/{pod.name} {state.name}: unknown state {state.state!r}"
    return ""


def reported(node_probe: NodePodProbe, report: NodePodProbeStatus | None, now: datetime) -> NodePodProbeStatus:
    """Return the status without probes that are not in the spec, merged with the report, if there is one.

    Entries keep their order; new ones follow in the order of the spec. Applying the same report to the result changes
    nothing more.
    """
    stored = _states(node_probe.status)
    new = _states(report) if report is not None else {}
    wanted = {pod.uid: pod for pod in node_probe.spec.pod_probes}
    limit = min(MESSAGE_BYTES, MESSAGES_BYTES // max(sum(len(pod.probes) for pod in wanted.values()), 1))
    entries: list[PodProbeStatus] = []
    for uid in dict.fromkeys([*stored, *wanted]):
        if (pod := wanted.get(uid)) is None:
            continue
        before, after = stored.get(uid, {}), new.get(uid, {})
        probes = {probe.name for probe in pod.probes}
        names = dict.fromkeys([*before, *(probe.name for probe in pod.probes if probe.name in after)])
        states = [_state(before.get(name), after.get(name), limit, now) for name in names if name in probes]
        if states:
            entries.append(PodProbeStatus(name=pod.name, namespace=pod.namespace, uid=uid, probe_states=states))
    return NodePodProbeStatus(pod_probe_statuses=entries)


def _states(status: NodePodProbeStatus) -> dict[str, dict[str, ProbeState]]:
    """Return the states by pod uid and probe name; the last one of several with the same name."""
    states: dict[str, dict[str, ProbeState]] = {}
    for pod in status.pod_probe_statuses:
        states.setdefault(pod.uid, {}).update({state.name: state for state in pod.probe_states})
    return states


def _state(stored: ProbeState | None, new: ProbeState | None, limit: int, now: datetime) -> ProbeState:
    if new is None:
        return stored or ProbeState()
    moment, message = now.replace(microsecond=0), cut(new.message, limit)
    if stored is None or stored.state != new.state:
        since, known = moment, None
    else:
        since, known = stored.last_transition_time, stored if stored.message == message else None
    return ProbeState(
        name=new.name,
        state=new.state,
        last_probe_time=_probed(known, new, moment),
        last_transition_time=since,
        message=message,
    )


def _probed(stored: ProbeState | None, new: ProbeState, now: datetime) -> datetime | None:
    """Return when the probe was made, in whole seconds. `stored`: the state, if it shows the same result."""
    if new.last_probe_time is None or new.last_probe_time > later(now, AHEAD):
        return now if stored is None else stored.last_probe_time
    return new.last_probe_time.replace(microsecond=0)


def cut(message: str, limit: int) -> str:
    """Return the message, or as many whole characters of it as fit into `limit` bytes."""
    encoded = message.encode(errors="replace")
    return message if len(encoded) <= limit else encoded[:limit].decode(errors="ignore")


class Marks(msgspec.Struct):
    """The desired conditions, labels and annotations of a pod. A label or annotation of None is removed."""

    conditions: dict[str, ProbeState]
    labels: dict[str, str | None]
    annotations: dict[str, str | None]


def marks_of(states: Iterable[ProbeState], markers: Mapping[str, PodProbeMarker]) -> Marks:
    """Return the marks for the results of a pod, in their order.

    The first result of a condition type sets the condition, and the last one of a key sets the key. `markers` holds the
    PodProbeMarkers of the pod's namespace, by name.
    """
    marks = Marks({}, {}, {})
    for state in states:
        name, probe_name = split(state.name)
        marker = markers.get(name)
        if not state.state or marker is None or marker.metadata.deletion_timestamp is not None:
            continue
        probe = marker.probe(probe_name)
        if probe is None:
            continue
        if probe.pod_condition_type and probe.pod_condition_type not in NATIVE_TYPES:
            marks.conditions.setdefault(probe.pod_condition_type, state)
        _apply_policies(marks, probe, state.state)
    return marks


def _apply_policies(marks: Marks, probe: ContainerProbe, state: str) -> None:
    matched, opposite = chosen(probe.marker_policy, state)
    if opposite is not None:
        marks.labels.update(dict.fromkeys(opposite.labels))
        marks.annotations.update(dict.fromkeys(opposite.annotations))
    if matched is not None:
        marks.labels.update(matched.labels)
        marks.annotations.update(matched.annotations)


def chosen(policies: Sequence[MarkerPolicy], state: str) -> tuple[MarkerPolicy | None, MarkerPolicy | None]:
    """Return the policy of the state, and the last policy of another state."""
    matched: MarkerPolicy | None = None
    opposite: MarkerPolicy | None = None
    for policy in policies:
        if policy.state == state and state in (SUCCEEDED, FAILED):
            matched = policy
        else:
            opposite = policy
    return matched, opposite


def pod_patch(pod: Pod, marks: Marks) -> Patch | None:
    """Return the one write that applies the marks to the pod; None if it has them. Times alone do not count.

    Conditions merge by type and keys by name, so the patch needs no version of the pod, does not conflict with the
    kubelet, and restores nothing old: it holds only the results.
    """
    meta = pod.metadata
    changed = {kind: state for kind, state in marks.conditions.items() if _differs(pod, kind, state)}
    conditions = [_condition(kind, state) for kind, state in changed.items()]
    metadata: Json = {}
    if labels := _changes(meta.labels, marks.labels):
        metadata["labels"] = labels
    if annotations := _changes(meta.annotations, marks.annotations):
        metadata["annotations"] = annotations
    body: Json = {}
    if metadata:
        body["metadata"] = metadata
    if conditions:
        body["status"] = {"conditions": conditions}
    if not body:
        return None
    shown = named([f"{state.name} {state.state}" for state in changed.values()])
    return patch_of(
        POD,
        meta,
        Intent.UPDATE,
        f"results of its probes: {shown}" if shown else "results of its probes",
        body=body,
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )


def _differs(pod: Pod, kind: str, state: ProbeState) -> bool:
    current = pod.conditions.get(kind)
    return current is None or (current.status, current.message) != (status_of(state), state.message)


def status_of(state: ProbeState) -> str:
    """Return the status of the condition that shows the result; Unknown counts as False."""
    return "True" if state.state == SUCCEEDED else "False"


def _condition(kind: str, state: ProbeState) -> Json:
    return {
        "type": kind,
        "status": status_of(state),
        "lastProbeTime": _time(state.last_probe_time),
        "lastTransitionTime": _time(state.last_transition_time),
        "message": state.message or None,  # None removes an existing one
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def _changes(current: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    return {key: value for key, value in wanted.items() if current.get(key) != value}
