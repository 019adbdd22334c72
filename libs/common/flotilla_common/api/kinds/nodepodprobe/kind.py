"""NodePodProbe: the probes that one node runs, and their results. It has the node's name."""

from flotilla_common.api.kinds.kind import Kind, NodeRoute, Workers, rules_in
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE
from flotilla_common.api.meta import metadata_of

KIND = Kind(
    resource=NODE_POD_PROBE,
    doc="A NodePodProbe lists the probes that one node's agent runs, and their results. It has the node's name.",
    service="policy",
    rules=rules_in("flotilla_common.api.kinds.nodepodprobe.api"),
    versions=("v1alpha1",),
    gates=("PodProbeMarkerGate", "KruiseDaemon"),
    workers=Workers(flag="nodepodprobe"),
    made_by_us=True,
    node_route=NodeRoute(lambda body: metadata_of(body).name),
)
