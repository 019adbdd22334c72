"""StatefulSet between v1alpha1 and v1beta1, on raw documents (statefulset.md §2.3).

v1beta1 is the hub. What both versions have is the same. What only v1beta1 has stays where it is when somebody reads an
object as v1alpha1 and writes it back; the original loses it.
"""

from flotilla_common.api.versions import Conversion, only_beta

_VERSIONS = Conversion(
    "StatefulSet",
    to_beta=lambda _: None,
    to_alpha=lambda _: None,
    only_beta=only_beta(
        "spec.reserveOrdinals",
        "spec.ordinals",
        "spec.scaleStrategy",
        "spec.lifecycle",
        "spec.persistentVolumeClaimRetentionPolicy",
        "spec.volumeClaimUpdateStrategy",
        "status.updatedReadyReplicas",
        "status.updatedAvailableReplicas",
        "status.volumeClaims",
    ),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
