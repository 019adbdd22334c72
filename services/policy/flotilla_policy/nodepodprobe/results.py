"""Derives conditions, labels and annotations of pods from the results of probes (podprobemarker.md §6)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.nodepodprobe.types import FAILED, SUCCEEDED, ProbeState, split
from flotilla_common.api.kinds.podprobemarker.types import ContainerProbe, MarkerPolicy, PodProbeMarker
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Intent, Patch, PatchType
from flotilla_common.control.text import named
from flotilla_common.control.writes import patch_of

NATIVE_TYPES = frozenset(
    {
        *("PodScheduled", "Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers"),
        *("DisruptionTarget", "PodResizePending", "PodResizeInProgress", "AllContainersRestarting"),
        *("KruisePodReady", "InPlaceUpdateReady"),
    }
)
"""Conditions of the kubelet and other controllers. No result is written there: writers would alternate."""


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
