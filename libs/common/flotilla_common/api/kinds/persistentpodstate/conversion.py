"""PersistentPodState between v1alpha1 and v1beta1, on raw documents (persistentpodstate.md §2): lists of keys have
another name, everything else is the same, and nothing is lost."""

from functools import partial

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.versions import Conversion

_ALPHA, _BETA = "nodeTopologyKeys", "keys"


def _rename(document: Json, old: str, new: str) -> None:
    spec = member(document, "spec")
    preferences = [member(term, "preference") for term in mappings(spec.get("preferredPersistentTopology"))]
    for topology in (member(spec, "requiredPersistentTopology"), *preferences):
        if old in topology:
            topology[new] = topology.pop(old)


_VERSIONS = Conversion(
    "PersistentPodState", partial(_rename, old=_ALPHA, new=_BETA), partial(_rename, old=_BETA, new=_ALPHA)
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
