"""Declares the PodProbeMarker controller: its watches, its writes, and the gatherer of its snapshots."""

from collections.abc import Iterable

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import Json, member, strings, typed
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER, PodProbeMarker
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import NODE, POD
from flotilla_common.api.selectors import Selector
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import IN_NAMESPACE, Near, Pods, Trigger, Watch, namespace_of
from flotilla_policy.attempts import attempts_of
from flotilla_policy.podprobemarker.plan import plan
from flotilla_policy.podprobemarker.snapshot import PodProbeMarkerSnapshot
from flotilla_policy.probed_pods import MARKER, ON_NODE, by_marker, can_be_probed, is_virtual, node_of, probes_off

SERVERLESS = "EnablePodProbeMarkerOnServerless"
"""The gate that lets virtual nodes run probes."""


def _is_in_its_namespace(marker: Json, other: Json) -> bool:
    return member(marker, "metadata").get("namespace") == member(other, "metadata").get("namespace")


def _is_selected(marker: Json, pod: Json) -> bool:
    if not _is_in_its_namespace(marker, pod):
        return False
    try:
        query = Selector.compile(typed(member(marker, "spec", "selector"), LabelSelector))
    except ValueError:  # msgspec's errors included
        return False
    return query.matches(strings(member(pod, "metadata", "labels")))


MARKERS = Watch(
    POD_PROBE_MARKER,
    PodProbeMarker,
    indexes={IN_NAMESPACE: namespace_of},
    writes=("patch",),
    subresources=("status",),
    concerns=_is_in_its_namespace,
)
NODE_PROBES = Watch(
    NODE_POD_PROBE, NodePodProbe, indexes={MARKER: by_marker}, fresh=True, concerns=lambda marker, node_probe: True
)
PODS = Watch(
    POD,
    Pod,
    indexes={ON_NODE: node_of, IN_NAMESPACE: namespace_of},
    writes=("patch",),
    conditional=True,  # a patch holds only what the conditions show, so it is right on any version
    pods=Pods(near=(Near(MARKERS),)),
    concerns=_is_selected,
)
NODES = Watch(NODE, Node, concerns=lambda marker, node: True)


class Gatherer:
    """Builds the snapshot of one PodProbeMarker."""

    def __init__(self, context: ControllerContext) -> None:
        self._markers = context.table(MARKERS)
        self._node_probes = context.table(NODE_PROBES)
        self._pods = context.table(PODS)
        self._nodes = context.table(NODES)
        self._serverless = context.gates.on(SERVERLESS)

    def gather(self, key: Key, memory: Memory) -> PodProbeMarkerSnapshot | None:
        """Return the PodProbeMarker and its surroundings; None when it does not exist."""
        marker = self._markers.get(*key)
        if marker is None:
            return None
        pods = [pod for pod in self._in(key[0]) if can_be_probed(pod) and marker.selects(pod.metadata.labels)]
        names = {pod.spec.node_name for pod in pods}
        node_probes = {each.metadata.name: each for each in self._node_probes.by_index(MARKER, key)}
        node_probes |= {name: each for name in names if (each := self._node_probes.get("", name)) is not None}
        others = [each for each in self._markers.by_index(IN_NAMESPACE, key[0]) if each.metadata.name != key[1]]
        return PodProbeMarkerSnapshot(
            marker=marker,
            pods=pods,
            nodes={name: node for name in names if (node := self._nodes.get("", name)) is not None},
            node_probes=node_probes,
            others=others,
            serverless=self._serverless,
            attempts=attempts_of(memory),
        )

    def _in(self, namespace: str) -> Iterable[Pod]:
        return self._pods.by_index(IN_NAMESPACE, namespace)

    def of_pod(self, old: Pod | None, new: Pod | None) -> set[Key]:
        """Return the PodProbeMarkers for which a relevant field of the pod has changed."""
        if old is not None and new is not None and self._pod_fields(old) == self._pod_fields(new):
            return set()
        return {key for pod in (old, new) if pod is not None for key in self._selecting(pod)}

    def _pod_fields(self, pod: Pod) -> tuple[object, ...]:
        """Return the fields of a pod that a PodProbeMarker depends on."""
        # The phase shows whether its containers have started.
        conditions = [(each.type, each.status) for each in pod.status.conditions] if self._serverless else []
        meta = pod.metadata
        marks = (meta.labels, meta.annotations if self._serverless else {}, conditions)
        return meta.uid, pod.spec.node_name, can_be_probed(pod), pod.status.phase, marks

    def _selecting(self, pod: Pod) -> Iterable[Key]:
        markers = self._markers.by_index(IN_NAMESPACE, pod.metadata.namespace)
        return [marker.metadata.key for marker in markers if marker.selects(pod.metadata.labels)]

    def of_node(self, old: Node | None, new: Node | None) -> set[Key]:
        """Return the PodProbeMarkers with pods on a node that is added or removed, or changes its type."""
        node = new or old
        if node is None or (old is not None and new is not None and is_virtual(old) == is_virtual(new)):
            return set()
        pods = self._pods.by_index(ON_NODE, node.metadata.name)
        return {key for pod in pods if can_be_probed(pod) for key in self._selecting(pod)}


def _of_node_probes(old: NodePodProbe | None, new: NodePodProbe | None) -> set[Key]:
    """Return the PodProbeMarkers of a NodePodProbe whose spec has changed. Results do not matter."""
    if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
        return set()
    return {key for node_probe in (old, new) if node_probe is not None for key in by_marker(node_probe)}


CONTROLLER = ControllerSpec(
    name="podprobemarker-controller",
    primary=MARKERS,
    watches=(NODE_PROBES, PODS, NODES),
    off=probes_off,
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [
        Trigger(PODS, gatherer.of_pod),
        Trigger(NODE_PROBES, _of_node_probes),
        Trigger(NODES, gatherer.of_node),
    ],
    plan=plan,
)
