"""SidecarSet between v1alpha1 and v1beta1, on raw documents (sidecarset.md §2.4).

v1beta1 is the hub. A custom version is a label in v1alpha1. A namespace that v1alpha1 names becomes a selector over
namespaces, and stays one when it is read back.
"""

from flotilla_common.api.documents import Json, ensured, mapping, member
from flotilla_common.api.keys import CUSTOM_VERSION_LABEL
from flotilla_common.api.versions import Conversion
from flotilla_common.api.webhooks import NAMESPACE_NAME


def _to_beta(document: Json) -> None:
    spec, metadata = mapping(document.get("spec")), member(document, "metadata")
    if namespace := spec.pop("namespace", None):
        spec["namespaceSelector"] = {"matchLabels": {NAMESPACE_NAME: namespace}}
    labels = mapping(metadata.get("labels"))
    if custom_version := labels.pop(CUSTOM_VERSION_LABEL, None):
        ensured(document, "spec")["customVersion"] = custom_version
    if not labels:
        metadata.pop("labels", None)


def _to_alpha(document: Json) -> None:
    if custom_version := mapping(document.get("spec")).pop("customVersion", None):
        ensured(ensured(document, "metadata"), "labels")[CUSTOM_VERSION_LABEL] = custom_version


_VERSIONS = Conversion("SidecarSet", _to_beta, _to_alpha)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
