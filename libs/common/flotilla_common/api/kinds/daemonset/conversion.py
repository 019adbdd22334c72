"""Converts DaemonSets between v1alpha1 and v1beta1, on raw documents (daemonset.md §2.4).

v1beta1 is the hub. Fields that are not named here, the template included, are the same in both versions and are passed
through. v1alpha1 has an annotation for a field of v1beta1; the annotation stays when the field is removed through
v1beta1, and the next write through v1alpha1 sets the field again.
"""

from flotilla_common.api.documents import Json, ensured, member, strings
from flotilla_common.api.versions import Conversion, annotate, only_beta

PROGRESSIVE = "daemonset.kruise.io/progressive-create-pod"
"""The annotation that is v1alpha1's form of scaleStrategy.partitionedScaling."""

STANDARD, IN_PLACE, SURGING = "Standard", "InPlaceIfPossible", "Surging"
"""Update types. The last one is an old name in v1alpha1 of Standard with maxSurge."""


def _to_beta(document: Json) -> None:
    rolling = member(document, "spec", "updateStrategy", "rollingUpdate")
    if rolling.get("rollingUpdateType") == SURGING:
        rolling["rollingUpdateType"] = STANDARD
    if strings(member(document, "metadata", "annotations")).get(PROGRESSIVE) == "true":
        ensured(document, "spec")["scaleStrategy"] = {"partitionedScaling": True}
    _rename(document, "daemonSetHash", "updateRevision")


def _to_alpha(document: Json) -> None:
    spec = member(document, "spec")
    annotations = strings(member(document, "metadata", "annotations"))
    partitioned = member(spec, "scaleStrategy").get("partitionedScaling")
    if partitioned is True:
        annotate(document, {PROGRESSIVE: "true"})
        del spec["scaleStrategy"]
    elif partitioned is False and annotations.get(PROGRESSIVE) == "true":
        annotate(document, {PROGRESSIVE: "false"})  # or a client of v1alpha1 would turn it on again
    _rename(document, "updateRevision", "daemonSetHash")


def _rename(document: Json, field: str, name: str) -> None:
    status = member(document, "status")
    if field in status:
        status[name] = status.pop(field)


_VERSIONS = Conversion("DaemonSet", _to_beta, _to_alpha, only_beta("spec.scaleStrategy"))
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
