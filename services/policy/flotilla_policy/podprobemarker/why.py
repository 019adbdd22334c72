"""Explains the state of a PodProbeMarker, for people and for scripts."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.nodepodprobe.types import PROBES_PER_NODE, PROBES_PER_POD
from flotilla_common.api.kinds.podprobemarker.types import ContainerProbe, PodProbeMarker
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, nodes_word, pods_word
from flotilla_policy.nodepodprobe.results import NATIVE_TYPES
from flotilla_policy.podprobemarker.progress import Progress
from flotilla_policy.podprobemarker.snapshot import PodProbeMarkerSnapshot
from flotilla_policy.probes import agents_unreachable, overdue_probes

RECHECK = timedelta(seconds=10)
"""The interval for checking a node whose agent is silent again: its results wake no PodProbeMarker."""


def explain_deletion(progress: Progress, builder: PlanBuilder) -> None:
    """Add a reason for what the deletion waits for."""
    if nodes := [*progress.pending]:
        message = f"its probes are still in the NodePodProbes of {nodes_word(len(nodes))}: {named(nodes)}"
        builder.reason(State.WAITING, "WaitingForNodePodProbes", message, nodes)


def explain(snapshot: PodProbeMarkerSnapshot, progress: Progress, builder: PlanBuilder, now: datetime) -> None:
    """Add reasons: how many pods are probed, and what prevents the others."""
    marker = snapshot.marker
    if marker.query is None:
        message = "the selector is empty or cannot be read: it selects no pod"
        builder.reason(State.STUCK, "InvalidSelector", message)
        return
    if progress.left_out:
        pods = [*progress.left_out]
        message = (
            f"there is no capacity for probes of {pods_word(len(pods))}: {named(pods)}; an agent runs {PROBES_PER_POD} "
            f"probes per pod and {PROBES_PER_NODE} per node"
        )
        builder.reason(State.STUCK, "TooManyProbes", message, pods)
    _explain_unreachable_agents(snapshot, builder, now)
    if nodes := [*progress.pending]:
        message = f"its probes are not yet in the NodePodProbes of {nodes_word(len(nodes))}: {named(nodes)}"
        builder.reason(State.WAITING, "WaitingForNodePodProbes", message, nodes)
    _explain_probes(snapshot, progress, builder)
    normal, virtual = snapshot.normal, snapshot.virtual
    if not normal and not virtual:
        builder.reason(State.DONE, "NoPods", "no pod that its selector matches can be probed now")
        return
    nodes = {pod.spec.node_name for pod in normal}
    message = f"its probes are for {pods_word(len(normal))} on {nodes_word(len(nodes))}"
    builder.reason(State.DONE, "PodsProbed", message)


def _explain_unreachable_agents(snapshot: PodProbeMarkerSnapshot, builder: PlanBuilder, now: datetime) -> None:
    nodes: dict[str, None] = {}
    for pod in snapshot.normal:
        node_probe = snapshot.node_probes.get(pod.spec.node_name)
        if node_probe is not None and any(overdue_probes(node_probe, pod, [snapshot.marker], now, builder.deadlines)):
            nodes[node_probe.metadata.name] = None
    if nodes:
        builder.reason(State.STUCK, "WaitingForNodeAgent", agents_unreachable([*nodes]), [*nodes], symptom=True)
        builder.deadlines.until(now + RECHECK)


def _explain_probes(snapshot: PodProbeMarkerSnapshot, progress: Progress, builder: PlanBuilder) -> None:
    """Add notes about probes that are skipped, lack a container, or share a condition type."""
    for (probe, why), pods in _grouped(progress).items():
        builder.reason(State.NOTE, "ProbeSkipped", f"probe {probe} is left out in {named(pods)}: {why}", pods)
    for probe in snapshot.marker.spec.probes:
        skipped = {each.pod for each in progress.skipped if each.probe == probe.name}
        lacking = [pod for pod in snapshot.normal if not _has_container(pod, probe.container_name)]
        if pods := [pod.metadata.name for pod in lacking if pod.metadata.name not in skipped]:
            message = f"probe {probe.name} has no result in {named(pods)}: there is no container {probe.container_name}"
            builder.reason(State.NOTE, "ContainerNotFound", message, pods)
        if probe.pod_condition_type in NATIVE_TYPES:
            message = f"probe {probe.name} does not write condition {probe.pod_condition_type}: it is Kubernetes' own"
            builder.reason(State.NOTE, "NativeConditionType", message)
        _explain_sharing(snapshot, probe, builder)
    if snapshot.virtual and not snapshot.serverless:
        pods = [pod.metadata.name for pod in snapshot.virtual]
        message = f"gate EnablePodProbeMarkerOnServerless is off: nothing is done on virtual nodes for {named(pods)}"
        builder.reason(State.NOTE, "ServerlessOff", message, pods)


def _grouped(progress: Progress) -> Mapping[tuple[str, str], list[str]]:
    pods: dict[tuple[str, str], list[str]] = {}
    for one in progress.skipped:
        pods.setdefault((one.probe, one.why), []).append(one.pod)
    return pods


def _has_container(pod: Pod, name: str) -> bool:
    return any(container.name == name for container in (*pod.spec.containers, *pod.spec.init_containers))


def _explain_sharing(snapshot: PodProbeMarkerSnapshot, probe: ContainerProbe, builder: PlanBuilder) -> None:
    for other in snapshot.others if probe.pod_condition_type else ():
        if _has_type(other, probe.pod_condition_type) and _meet(other, snapshot.normal):
            name = other.metadata.name
            message = f"PodProbeMarker {name} writes condition {probe.pod_condition_type}, too: the first one wins"
            builder.reason(State.NOTE, "ConditionTypeTaken", message, [name])


def _has_type(marker: PodProbeMarker, kind: str) -> bool:
    return any(probe.pod_condition_type == kind for probe in marker.spec.probes)


def _meet(other: PodProbeMarker, pods: Iterable[Pod]) -> bool:
    return any(other.selects(pod.metadata.labels) for pod in pods)
