"""Converts NodeImages between v1alpha1 and v1beta1, on raw documents (imagepull.md §2.1).

v1beta1 is the hub. v1alpha1 only lacks the mode of a pull secret.
"""

from flotilla_common.api.versions import Conversion, only_beta

_VERSIONS = Conversion(
    "NodeImage",
    to_beta=lambda _: None,
    to_alpha=lambda _: None,
    only_beta=only_beta("spec.images.*.pullSecrets[namespace,name].mode"),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
