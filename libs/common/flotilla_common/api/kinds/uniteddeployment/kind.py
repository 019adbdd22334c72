"""UnitedDeployment: one workload in each of several zones."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.kind import Kind, Workers, rules_in
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT

KIND = Kind(
    resource=UNITED_DEPLOYMENT,
    doc="A UnitedDeployment runs a workload in each of several zones, and distributes pods among them.",
    service="topology",
    rules=rules_in("flotilla_common.api.kinds.uniteddeployment.admission"),
    short_names=("ud",),
    scale=True,
    workers=Workers(3, "uniteddeployment"),
    parts=(CLONE_SET, STATEFUL_SET),
)
