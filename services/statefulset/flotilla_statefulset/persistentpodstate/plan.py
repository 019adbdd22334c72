"""Plans one pass over one PersistentPodState (persistentpodstate.md §4, §5).

First it follows the annotations of the workload, then it records where the pods ran: which records stay, which are
renewed and which are removed.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    PersistentPodState,
    PersistentPodStateSpec,
    PersistentPodStateStatus,
    PodState,
)
from flotilla_common.api.numbers import integer
from flotilla_common.control.plan import Plan, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.control.writes import status_patch
from flotilla_common.workload.causes import PodContext, explain_pods
from flotilla_statefulset.ordinals import Ordinals
from flotilla_statefulset.persistentpodstate.generate import generate
from flotilla_statefulset.persistentpodstate.snapshot import StateSnapshot, Workload, called


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """The desired records, and the pods for which there can be none yet."""

    states: dict[str, PodState]
    not_ready: list[str]  # pods that have no record because they are not ready yet
    unknown_nodes: dict[str, str]  # ready pods whose node is not found, with its name
    unlabelled: list[str]  # pods whose node has none of the labels


def plan(snapshot: StateSnapshot, now: datetime) -> Plan:
    """Plan the next step of one PersistentPodState."""
    builder, state = PlanBuilder(), snapshot.state
    if state is not None and state.metadata.deletion_timestamp is not None:
        builder.reason(State.PROGRESSING, "Deleting", "it is being deleted; recording has stopped")
        return builder.plan()
    if generate(snapshot, builder) or state is None:
        return builder.plan()
    desired = _desired(snapshot, state, now, builder)
    if desired is None:
        return builder.plan()
    status = PersistentPodStateStatus(observed_generation=state.metadata.generation, pod_states=desired)
    return builder.plan(
        # The apiserver's answer about a workload is valid for this version of the object.
        status=status_patch(PERSISTENT_POD_STATE, state.metadata, state.status, status, on_version=True),
        urgent_status=state.status.observed_generation != state.metadata.generation,
        numbers={"recorded": len(desired)},
    )


def _desired(
    snapshot: StateSnapshot, state: PersistentPodState, now: datetime, builder: PlanBuilder
) -> dict[str, PodState] | None:
    """Return the desired records; None while they cannot be determined."""
    recorded, what = state.status.pod_states, called(state.spec.target_ref)
    if snapshot.unfollowed:
        text = f"the records are kept: {snapshot.unfollowed}"
        builder.reason(State.STUCK, "TargetNotFollowed", text)
        return None
    if snapshot.target is None:
        if recorded and (snapshot.confirmed_read is None or snapshot.confirmed_read.found is not None):
            text = f"the records are kept: checking whether {what} is gone"
            builder.reason(State.PROGRESSING, "ReadingTarget", text)
            return None
        builder.reason(State.STUCK, "TargetMissing", f"{what} does not exist; nothing is recorded")
        return {}
    if snapshot.target.terminating:
        builder.reason(State.WAITING, "TargetTerminating", f"{what} is being deleted; recording has stopped")
        return {}
    records = desired_records(snapshot, recorded, state.spec)
    _explain(snapshot, state, records, now, builder)
    return records.states


def _explain(
    snapshot: StateSnapshot, state: PersistentPodState, records: Records, now: datetime, builder: PlanBuilder
) -> None:
    if records.states:
        names = sorted(records.states)
        builder.reason(State.DONE, "Recorded", f"{pods_word(len(names))} recorded: {named(names)}", names)
    if dropped := sorted(state.status.pod_states.keys() - records.states.keys()):
        text = f"removing records of pods that are no longer wanted: {named(dropped)}"
        builder.reason(State.PROGRESSING, "Dropped", text, dropped)
    if records.not_ready:
        text = f"not recorded until they are ready: {named(records.not_ready)}"
        builder.reason(State.WAITING, "WaitingForReady", text, records.not_ready)
        explain_pods(
            builder, (pod for pod in snapshot.pods if pod.metadata.name in records.not_ready), PodContext(now=now)
        )
    for pod, node in sorted(records.unknown_nodes.items())[:1]:
        others = named(sorted(records.unknown_nodes))
        text = f"not updated: {others}; {pod} runs on node {node}, which does not exist"
        builder.reason(State.WAITING, "NodeUnknown", text)
    if records.unlabelled:
        keys, pods = ", ".join(topology_keys(state.spec)), named(records.unlabelled)
        text = f"not bound to a topology: {pods}; their nodes lack the label {keys}"
        builder.reason(State.STUCK, "LabelsMissing", text)
    if state.spec.persistent_pod_state_retention_policy == KEEPS_ALL:
        text = "records of pods that are scaled away stay until the workload is deleted"
        builder.reason(State.NOTE, "KeptWhenScaled", text)


KEEPS_ALL = "WhenDeleted"


def desired_records(snapshot: StateSnapshot, recorded: Mapping[str, PodState], spec: PersistentPodStateSpec) -> Records:
    """Return the records of the target's pods, given the previous ones."""
    target = snapshot.target
    assert target is not None, "without a workload there are no records"
    pods = [pod for pod in snapshot.pods if pod.active] if len(target.ordinals) else []
    names = {pod.metadata.name for pod in pods}
    states = dict(_kept(recorded, target, spec, names))
    ready = [pod for pod in pods if pod.ready and pod.spec.node_name]
    for pod in ready:
        node = snapshot.nodes.get(pod.spec.node_name)
        if node is not None:
            states[pod.metadata.name] = _record(pod, node, spec)
    return Records(
        states=states,
        not_ready=sorted(names - states.keys() - {pod.metadata.name for pod in ready}),
        unknown_nodes={
            pod.metadata.name: pod.spec.node_name for pod in ready if pod.spec.node_name not in snapshot.nodes
        },
        unlabelled=sorted(name for name, state in states.items() if not state.node_topology_labels),
    )


def topology_keys(spec: PersistentPodStateSpec) -> list[str]:
    """Return the node labels that the topology uses, required or preferred."""
    required = spec.required_persistent_topology
    preferred = [key for term in spec.preferred_persistent_topology for key in term.preference.keys]
    return sorted({*(required.keys if required is not None else ()), *preferred})


def _record(pod: Pod, node: Node, spec: PersistentPodStateSpec) -> PodState:
    annotations = [annotation.key for annotation in spec.persistent_pod_annotations]
    return PodState(
        node_name=pod.spec.node_name,
        node_topology_labels=_of(node.metadata.labels, topology_keys(spec)),
        annotations=_of(pod.metadata.annotations, annotations),
    )


def _of(values: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: values[key] for key in keys if key in values}


def _kept(
    recorded: Mapping[str, PodState], target: Workload, spec: PersistentPodStateSpec, pods: Collection[str]
) -> Iterable[tuple[str, PodState]]:
    """Yield the records that stay: a record outlives its pod while the workload has a place of that ordinal."""
    keeps_all = spec.persistent_pod_state_retention_policy == KEEPS_ALL
    for name, state in recorded.items():
        if keeps_all or name in pods or _is_wanted(name, target.ordinals):
            yield name, state


def _is_wanted(pod: str, ordinals: Ordinals) -> bool:
    """Report whether the pod's ordinal is wanted. A name without a number is not a pod of the workload, and stays."""
    digits = pod.rpartition("-")[2] if "-" in pod else ""
    if not (digits.isascii() and digits.isdigit()):
        return True
    number = integer(digits)
    return number is not None and number in ordinals
