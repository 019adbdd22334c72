"""StatefulSet between v1alpha1 and v1beta1, on raw documents (statefulset.md §2.3).

v1beta1 is the hub. What both versions have is the same; what only v1beta1 has is lost on the way to v1alpha1, so
whoever reads and writes through the older version erases it.
"""

from flotilla_common.api.documents import Json, member
from flotilla_common.api.versions import Conversion

_BETA_SPEC = (
    "reserveOrdinals",
    "ordinals",
    "scaleStrategy",
    "lifecycle",
    "persistentVolumeClaimRetentionPolicy",
    "volumeClaimUpdateStrategy",
)
_BETA_STATUS = ("updatedReadyReplicas", "updatedAvailableReplicas", "volumeClaims")


def _to_alpha(document: Json) -> None:
    for part, fields in (("spec", _BETA_SPEC), ("status", _BETA_STATUS)):
        for field in fields:
            member(document, part).pop(field, None)


_VERSIONS = Conversion("StatefulSet", lambda _: None, _to_alpha)
convert = _VERSIONS.convert
