"""The API of PodProbeMarkers: CRD and validation, without defaults (podprobemarker.md §1 to §3)."""

from functools import partial

from flotilla_common.api.admission.handlers import Findings, Tools, Write, decoded, document_of, review
from flotilla_common.api.admission.review import ALLOWED, Answer, Request
from flotilla_common.api.crds.schema import Schema, Version, array, integer, label_selector, mapping, string, struct
from flotilla_common.api.crds.shared import probe
from flotilla_common.api.documents import member
from flotilla_common.api.kinds.podprobemarker.types import PodProbeMarker
from flotilla_common.api.kinds.podprobemarker.validation import validate as faults_of
from flotilla_common.api.kinds.rules import Admission, Rules


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


check_types = partial(decoded, model=PodProbeMarker)
"""Raises ValueError if a field that Flotilla reads has a wrong type."""


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (400), but for a stored spec, so that the finalizer can be removed."""
    document = document_of(request, check_types)
    if request.operation == "UPDATE" and member(document, "spec") == member(request.old_object or {}, "spec"):
        return ALLOWED
    return await review(request, tools, check_types, _findings)


async def _findings(write: Write, _: Tools) -> Findings:
    return Findings(faults_of(write.document, write.old), code=400)


RULES = Rules(schema=version, admission=Admission(validate=validate, arms_pods=True))
