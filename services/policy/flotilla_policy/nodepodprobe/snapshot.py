"""The input of planning a NodePodProbe."""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe, NodePodProbeStatus
from flotilla_common.api.kinds.podprobemarker.types import PodProbeMarker
from flotilla_common.control.plan import ObjectRef
from flotilla_policy.attempts import Attempts


class NodePodProbeSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One node, its NodePodProbe, its pods, and the PodProbeMarkers of their namespaces."""

    name: str
    node: Node | None = None
    node_probe: NodePodProbe | None = None
    report: NodePodProbeStatus | None = None  # the newest report of the node's agent that is not written yet
    pods: Sequence[Pod] = ()  # pods on the node that may be probed
    markers: Mapping[str, Sequence[PodProbeMarker]] = {}  # by namespace, the oldest first
    attempts: Attempts = Attempts()  # pod writes of earlier passes

    @property
    def subject(self) -> ObjectRef:
        """The NodePodProbe as events and the bus name it, even before it exists."""
        if self.node_probe is None:
            return ObjectRef(NODE_POD_PROBE, "", self.name)
        return ObjectRef.of(NODE_POD_PROBE, self.node_probe.metadata)
