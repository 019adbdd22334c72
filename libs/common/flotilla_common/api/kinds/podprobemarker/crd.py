"""The PodProbeMarker CRD (podprobemarker.md §1 and §2.1), of one version and without columns."""

from flotilla_common.api.crds.probes import probe
from flotilla_common.api.crds.schema import Schema, array, integer, label_selector, mapping, string, struct
from flotilla_common.api.crds.version import Version


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, _spec(), _status())


def _spec() -> Schema:
    return struct(
        "The desired state.",
        ("selector", "probes"),
        selector=label_selector("The pods of the namespace that are probed; must not be empty and never changes."),
        probes=array("The probes, at least one.", _probe()),
    )


def _probe() -> Schema:
    policy = struct(
        "The labels and annotations for one state of the probe.",
        ("state",),
        state=string("Succeeded or Failed."),
        labels=mapping("Labels that are set in this state, and removed in the other one."),
        annotations=mapping("Annotations that are set in this state, and removed in the other one."),
    )
    return struct(
        "One probe of one container.",
        ("name", "containerName", "probe"),
        name=string("The probe's name, unique in this list and without #."),
        containerName=string("The container that is probed."),
        probe=probe("The probe: one of exec, httpGet and tcpSocket."),
        markerPolicy=array("Labels and annotations by state; at most one entry per state.", policy),
        podConditionType=string("The condition of the pod that shows the result; a qualified name."),
    )


def _status() -> Schema:
    return struct(
        "The observed state.",
        ("observedGeneration",),
        observedGeneration=integer("The generation whose probes the NodePodProbes have.", bits=64),
        matchedPods=integer("Pods that are probed.", bits=64),
    )
