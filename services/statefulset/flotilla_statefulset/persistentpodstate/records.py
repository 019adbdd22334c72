"""Where the pods of a workload ran (persistentpodstate.md §5): which records stand, which are made anew, which go."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.persistentpodstate.types import PersistentPodStateSpec, PodState
from flotilla_common.api.numbers import integer
from flotilla_statefulset.ordinals import Ordinals
from flotilla_statefulset.persistentpodstate.snapshot import StateSnapshot
from flotilla_statefulset.persistentpodstate.workloads import Workload

KEEPS_ALL = "WhenDeleted"


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """The records as they must be, and what stands in the way of others."""

    states: dict[str, PodState]
    not_ready: list[str]  # pods that have no record because they are not ready yet
    unknown_nodes: dict[str, str]  # ready pods whose node is not there, with its name
    unlabelled: list[str]  # pods whose node has none of the labels


def records(snapshot: StateSnapshot, held: Mapping[str, PodState], spec: PersistentPodStateSpec) -> Records:
    """What is remembered of the target's pods, given what was remembered before."""
    target = snapshot.target
    assert target is not None, "without a workload there are no records"
    pods = [pod for pod in snapshot.pods if pod.active] if len(target.ordinals) else []
    names = {pod.metadata.name for pod in pods}
    states = dict(_kept(held, target, spec, names))
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
    """The labels of nodes that matter, whether required or preferred."""
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
    held: Mapping[str, PodState], target: Workload, spec: PersistentPodStateSpec, pods: Collection[str]
) -> Iterable[tuple[str, PodState]]:
    """A record outlives its pod as long as the workload is to have a pod of that number."""
    keeps_all = spec.persistent_pod_state_retention_policy == KEEPS_ALL
    for name, state in held.items():
        if keeps_all or name in pods or _is_wanted(name, target.ordinals):
            yield name, state


def _is_wanted(pod: str, ordinals: Ordinals) -> bool:
    """What has no number in its name is none of the workload's pods, and stays."""
    digits = pod.rpartition("-")[2] if "-" in pod else ""
    if not (digits.isascii() and digits.isdigit()):
        return True
    number = integer(digits)
    return number is not None and number in ordinals
