"""ResourceDistribution: one Secret or ConfigMap, copied into many namespaces."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.kind import Kind, Workers
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.resourcedistribution import admission, conversion, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    webhooks = Admission(validate=admission.validate, old_paths=True)
    return Rules(schema=crd.version, convert=conversion.convert, admission=webhooks)


KIND = Kind(
    resource=RESOURCE_DISTRIBUTION,
    doc="A ResourceDistribution copies a Secret or ConfigMap into many namespaces, and keeps the copies equal to it.",
    service="sidecar",
    rules=_rules,
    short_names=("distributor",),
    gates=("ResourceDistributionGate",),
    workers=Workers(flag="resourcedistribution"),
    confidential=True,
)
