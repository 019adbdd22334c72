"""ResourceDistribution: one Secret or ConfigMap, copied into many namespaces."""

from flotilla_common.api.kinds.kind import Kind, Workers, rules_in
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION

KIND = Kind(
    resource=RESOURCE_DISTRIBUTION,
    doc="A ResourceDistribution copies a Secret or ConfigMap into many namespaces, and keeps the copies equal to it.",
    service="sidecar",
    rules=rules_in("flotilla_common.api.kinds.resourcedistribution.api"),
    short_names=("distributor",),
    gates=("ResourceDistributionGate",),
    workers=Workers(flag="resourcedistribution"),
    confidential=True,
)
