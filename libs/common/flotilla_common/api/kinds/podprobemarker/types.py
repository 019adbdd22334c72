"""PodProbeMarker, apps.kruise.io/v1alpha1: probes whose results are shown on pods (podprobemarker.md §2.1).

Probes stay raw: they are copied into NodePodProbes and pods as documents.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.meta import LabelSelector, Model, ObjectMeta, struct_cached_property
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import Selector

POD_PROBE_MARKER = Resource("apps.kruise.io", "v1alpha1", "podprobemarkers", "PodProbeMarker")

CLEAN_UP_FINALIZER = "kruise.io/node-pod-probe-cleanup"
PROBES, MARKERS = "kruise.io/podprobe", "kruise.io/podprobemarker-list"
"""Annotations of pods for virtual nodes: their probes as JSON, and the names of the PodProbeMarkers."""

VIRTUAL_NODE = ("type", "virtual-kubelet")
"""The label of nodes that run the probes of their pods by themselves."""


class MarkerPolicy(Model):
    """The labels and annotations that a pod gets in one state of the probe."""

    state: str = ""  # Succeeded or Failed
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ContainerProbe(Model):
    """One probe of one container."""

    name: str = ""
    container_name: str = ""
    probe: msgspec.Raw = msgspec.Raw(b"{}")
    marker_policy: list[MarkerPolicy] = []
    pod_condition_type: str = ""


class MarkerSpec(Model):
    selector: LabelSelector | None = None
    probes: list[ContainerProbe] = []


class MarkerStatus(Model):
    observed_generation: int = 0
    matched_pods: int = 0


class PodProbeMarker(Model, dict=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: MarkerSpec = MarkerSpec()
    status: MarkerStatus = MarkerStatus()

    @struct_cached_property
    def query(self) -> Selector | None:
        """Return the compiled selector; None if it is empty or invalid: then it selects no pod."""
        try:
            found = Selector.compile(self.spec.selector or LabelSelector())
        except ValueError:
            return None
        return None if found.empty else found

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Report whether pods with these labels are selected."""
        return self.query is not None and self.query.matches(labels)

    def probe(self, name: str) -> ContainerProbe | None:
        """Return the probe of that name, or None."""
        return next((one for one in self.spec.probes if one.name == name), None)
