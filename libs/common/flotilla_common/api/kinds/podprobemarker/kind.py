"""PodProbeMarker: user-defined probes, and their results on pods."""

from flotilla_common.api.kinds.kind import Kind, Workers, rules_in
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER

KIND = Kind(
    resource=POD_PROBE_MARKER,
    doc="A PodProbeMarker probes containers and shows the results as conditions, labels and annotations of their pods.",
    service="policy",
    rules=rules_in("flotilla_common.api.kinds.podprobemarker.api"),
    versions=("v1alpha1",),
    gates=("PodProbeMarkerGate", "KruiseDaemon"),
    workers=Workers(flag="podprobemarker"),
)
