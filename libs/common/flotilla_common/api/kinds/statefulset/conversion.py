"""Converts StatefulSets between v1alpha1 and v1beta1, on raw documents (statefulset.md §2.3).

v1beta1 is the hub. Common fields are the same in both versions. Fields that only v1beta1 has survive when a client
reads an object as v1alpha1 and writes it back; the reference loses them.
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
