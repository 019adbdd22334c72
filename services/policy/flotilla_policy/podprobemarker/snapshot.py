"""The snapshot that the plan for a PodProbeMarker is made from."""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbe
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER, PodProbeMarker
from flotilla_common.control.subject import Subject
from flotilla_policy.probing.attempts import Attempts
from flotilla_policy.probing.matching import is_virtual


class PodProbeMarkerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One PodProbeMarker, its pods, and the NodePodProbes of their nodes."""

    marker: PodProbeMarker
    pods: Sequence[Pod] = ()  # that it selects and that can be probed
    nodes: Mapping[str, Node] = {}  # of the pods, by name; those that there are
    node_probes: Mapping[str, NodePodProbe] = {}  # by name: of the pods' nodes, and all that have probes of it
    others: Sequence[PodProbeMarker] = ()  # of the namespace
    serverless: bool = False  # virtual nodes run probes and write conditions
    attempts: Attempts = Attempts()  # writes of pods that earlier passes have sent

    @property
    def subject(self) -> Subject:
        """Return the PodProbeMarker as events and the bus name it."""
        return Subject.of(POD_PROBE_MARKER, self.marker.metadata)

    @property
    def normal(self) -> list[Pod]:
        """Return the pods that node agents probe."""
        return [pod for pod in self.pods if (node := self._node(pod)) is not None and not is_virtual(node)]

    @property
    def virtual(self) -> list[Pod]:
        """Return the pods that virtual nodes probe."""
        return [pod for pod in self.pods if (node := self._node(pod)) is not None and is_virtual(node)]

    def _node(self, pod: Pod) -> Node | None:
        return self.nodes.get(pod.spec.node_name)
