"""PersistentPodState between v1alpha1 and v1beta1, on raw documents (persistentpodstate.md §2): lists of keys have
another name, everything else is the same, and nothing is lost."""

from functools import partial

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.versions import V1BETA1, converted

_ALPHA, _BETA = "nodeTopologyKeys", "keys"


def convert(document: Json, version: str) -> Json:
    """The object in the wanted `group/version`, as a new document. Raises ValueError for an unknown version."""
    to_beta, to_alpha = partial(_rename, old=_ALPHA, new=_BETA), partial(_rename, old=_BETA, new=_ALPHA)
    return converted("PersistentPodState", document, version, to_beta, to_alpha)


def to_hub(document: Json) -> Json:
    """The object as v1beta1; the same document if it is that already."""
    return document if document.get("apiVersion") == V1BETA1 else convert(document, V1BETA1)


def _rename(document: Json, old: str, new: str) -> None:
    spec = member(document, "spec")
    preferences = [member(term, "preference") for term in mappings(spec.get("preferredPersistentTopology"))]
    for topology in (member(spec, "requiredPersistentTopology"), *preferences):
        if old in topology:
            topology[new] = topology.pop(old)
