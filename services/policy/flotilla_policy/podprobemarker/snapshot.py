"""The input of planning a PodProbeMarker."""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbe
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER, PodProbeMarker
from flotilla_common.control.plan import ObjectRef
from flotilla_policy.attempts import Attempts
from flotilla_policy.probed_pods import is_virtual


class PodProbeMarkerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One PodProbeMarker, its pods, and the NodePodProbes of their nodes."""

    marker: PodProbeMarker
    pods: Sequence[Pod] = ()  # selected pods that can be probed
    nodes: Mapping[str, Node] = {}  # the existing nodes of these pods, by name
    node_probes: Mapping[str, NodePodProbe] = {}  # by name: of the pods' nodes, and others with probes of the marker
    others: Sequence[PodProbeMarker] = ()  # the other PodProbeMarkers of the namespace
    serverless: bool = False  # virtual nodes run probes and write conditions
    attempts: Attempts = Attempts()  # pod writes of earlier passes

    @property
    def subject(self) -> ObjectRef:
        """The PodProbeMarker as events and the bus name it."""
        return ObjectRef.of(POD_PROBE_MARKER, self.marker.metadata)

    @property
    def normal(self) -> list[Pod]:
        """The pods that node agents probe."""
        return [pod for pod in self.pods if (node := self._node(pod)) is not None and not is_virtual(node)]

    @property
    def virtual(self) -> list[Pod]:
        """The pods that virtual nodes probe."""
        return [pod for pod in self.pods if (node := self._node(pod)) is not None and is_virtual(node)]

    def _node(self, pod: Pod) -> Node | None:
        return self.nodes.get(pod.spec.node_name)
