"""Declares the NodePodProbe controller: its watches, its writes, and the reports that it accepts."""

from collections.abc import Iterable
from datetime import datetime

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER, PodProbeMarker
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.report_buffer import StatusReports
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import IN_NAMESPACE, Near, Pods, Trigger, Watch, namespace_of
from flotilla_common.node.reports import NODE_POD_PROBES, NodePodProbeReport
from flotilla_common.node.serving import Sender
from flotilla_policy.attempts import attempts_of
from flotilla_policy.nodepodprobe.plan import plan
from flotilla_policy.nodepodprobe.results import report_problem, reported
from flotilla_policy.nodepodprobe.snapshot import NodePodProbeSnapshot
from flotilla_policy.probed_pods import MARKER, ON_NODE, by_marker, can_be_probed, is_virtual, node_of, probes_off


def _is_own_node(node_probe: Json, node: Json) -> bool:
    return member(node_probe, "metadata").get("name") == member(node, "metadata").get("name")


def _is_on_node(node_probe: Json, pod: Json) -> bool:
    return member(node_probe, "metadata").get("name") == member(pod, "spec").get("nodeName")


NODE_PROBES = Watch(
    NODE_POD_PROBE,
    NodePodProbe,
    indexes={MARKER: by_marker},
    writes=("create", "delete", "patch"),
    subresources=("status",),
)
MARKERS = Watch(
    POD_PROBE_MARKER,
    PodProbeMarker,
    indexes={IN_NAMESPACE: namespace_of},
    fresh=True,
    concerns=lambda node_probe, marker: True,
)


def _probed_namespaces(node_probe: NodePodProbe) -> Iterable[str]:
    return [entry.namespace for entry in node_probe.spec.pod_probes]


PODS = Watch(
    POD,
    Pod,
    indexes={ON_NODE: node_of, IN_NAMESPACE: namespace_of},
    subresources=("status",),
    conditional=True,  # a patch holds only results, so it is right on any version
    fresh=True,
    pods=Pods(near=(Near(MARKERS), Near(NODE_PROBES, _probed_namespaces))),
    concerns=_is_on_node,
)
NODES = Watch(NODE, Node, fresh=True, concerns=_is_own_node)


class Gatherer:
    """Builds the snapshot of one node."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._node_probes = context.table(NODE_PROBES)
        self._markers = context.table(MARKERS)
        self._pods = context.table(PODS)
        self._nodes = context.table(NODES)

    def keys(self) -> list[Key]:
        """Return every node, and every NodePodProbe without a node."""
        names = {node.metadata.name for node in self._nodes} | {
            node_probe.metadata.name for node_probe in self._node_probes
        }
        return [("", name) for name in sorted(names)]

    def gather(self, key: Key, memory: Memory) -> NodePodProbeSnapshot | None:
        """Return the node, its NodePodProbe, and the pods that it may probe; None when there is neither."""
        name = key[1]
        node, node_probe = self._nodes.get("", name), self._node_probes.get("", name)
        if node is None and node_probe is None:
            return None
        report = self._context.reported(node_probe) if node_probe is not None else None
        pods = [pod for pod in self._pods.by_index(ON_NODE, name) if can_be_probed(pod)]
        namespaces = {pod.metadata.namespace for pod in pods}
        markers = {namespace: sorted(held, key=_seniority) for namespace in namespaces if (held := self._in(namespace))}
        return NodePodProbeSnapshot(
            name=name,
            node=node,
            node_probe=node_probe,
            report=report.status if isinstance(report, NodePodProbeReport) else None,
            pods=[pod for pod in pods if pod.metadata.namespace in markers],
            markers=markers,
            attempts=attempts_of(memory),
        )

    def _in(self, namespace: str) -> Iterable[PodProbeMarker]:
        return self._markers.by_index(IN_NAMESPACE, namespace)

    def of_marker(self, old: PodProbeMarker | None, new: PodProbeMarker | None) -> set[Key]:
        """Return the nodes that have or should have probes of the marker, unless only its status changed."""
        if old is not None and new is not None and _marker_fields(old) == _marker_fields(new):
            return set()
        keys: set[Key] = set()
        for marker in (each for each in (old, new) if each is not None):
            namespace = marker.metadata.namespace
            keys |= {each.metadata.key for each in self._node_probes.by_index(MARKER, marker.metadata.key)}
            pods = self._pods.by_index(IN_NAMESPACE, namespace)
            keys |= {
                ("", pod.spec.node_name) for pod in pods if can_be_probed(pod) and marker.selects(pod.metadata.labels)
            }
        return keys

    def of_pod(self, old: Pod | None, new: Pod | None) -> set[Key]:
        """Return the pod's nodes, if anything is probed in its namespace."""
        pods = [pod for pod in (old, new) if pod is not None and pod.spec.node_name]
        return {("", pod.spec.node_name) for pod in pods if self._concerns(pod)}

    def _concerns(self, pod: Pod) -> bool:
        labels = pod.metadata.labels
        if any(marker.selects(labels) for marker in self._in(pod.metadata.namespace)):
            return True
        node_probe = self._node_probes.get("", pod.spec.node_name)
        return node_probe is not None and any(entry.uid == pod.metadata.uid for entry in node_probe.spec.pod_probes)


def _marker_fields(marker: PodProbeMarker) -> tuple[object, ...]:
    return marker.metadata.uid, marker.metadata.generation, marker.metadata.deletion_timestamp


def _seniority(marker: PodProbeMarker) -> tuple[float, str]:
    return marker.metadata.seniority


def _keys_of_node(old: Node | None, new: Node | None) -> list[Key]:
    """Return the key of a node whose existence, type or readiness changes, but not for its heartbeats."""
    node = new or old
    if node is None or (old is not None and new is not None and _node_fields(old) == _node_fields(new)):
        return []
    return [("", node.metadata.name)]


def _node_fields(node: Node) -> tuple[object, ...]:
    return is_virtual(node), node.metadata.uid, node.metadata.deletion_timestamp is None, node.ready is None


def own_object(sender: Sender) -> Key:
    """Return the NodePodProbe that a node may report: the one with its name."""
    return "", sender.node


def refusal(sender: Sender, report: NodePodProbeReport) -> str:
    """Return why the report is rejected, regardless of the NodePodProbe's state."""
    if sender.name != sender.node:
        return f"node {sender.node} may not report for {sender.name}"
    return report_problem(report.status)


def absorbed(node_probe: NodePodProbe, report: NodePodProbeReport, now: datetime) -> bool:
    """Report whether writing the report would change nothing."""
    return reported(node_probe, report.status, now) == node_probe.status


CONTROLLER = ControllerSpec(
    name="nodepodprobe-controller",
    primary=NODE_PROBES,
    watches=(NODES, MARKERS, PODS),
    reports=StatusReports(
        kind=NODE_POD_PROBES, body=NodePodProbeReport, key=own_object, refusal=refusal, absorbed=absorbed
    ),
    off=probes_off,
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [
        Trigger(NODES, _keys_of_node),
        Trigger(MARKERS, gatherer.of_marker),
        Trigger(PODS, gatherer.of_pod),
    ],
    keys=Gatherer.keys,
    plan=plan,
)
