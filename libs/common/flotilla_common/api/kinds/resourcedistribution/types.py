"""ResourceDistribution in its hub and storage version, apps.kruise.io/v1beta1 (resourcedistribution.md §2)."""

from flotilla_common.api.resources import Resource

RESOURCE_DISTRIBUTION = Resource(
    "apps.kruise.io", "v1beta1", "resourcedistributions", "ResourceDistribution", namespaced=False
)
