"""WorkloadSpread: the distribution of a workload's pods over subsets."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.kind import Kind, Workers, rules_in
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD

KIND = Kind(
    resource=WORKLOAD_SPREAD,
    doc="A WorkloadSpread defines the order in which the pods of a workload fill zones or pools of nodes.",
    service="topology",
    rules=rules_in("flotilla_common.api.kinds.workloadspread.api"),
    short_names=("ws",),
    gates=("WorkloadSpread",),
    workers=Workers(3, "workloadspread"),
    parts=(CLONE_SET, STATEFUL_SET),
)
