"""Converts AdvancedCronJobs between v1alpha1 and v1beta1, on raw documents (advancedcronjob.md §2.3).

v1beta1 is the hub. v1alpha1 only lacks one of the templates.
"""

from flotilla_common.api.versions import Conversion, only_beta

_VERSIONS = Conversion(
    "AdvancedCronJob",
    to_beta=lambda _: None,
    to_alpha=lambda _: None,
    only_beta=only_beta("spec.template.imageListPullJobTemplate"),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
