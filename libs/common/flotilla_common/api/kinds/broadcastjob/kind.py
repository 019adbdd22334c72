"""BroadcastJob: a pod on every node that fits, run to its end."""

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.kind import Kind, Workers, rules_in

KIND = Kind(
    resource=BROADCAST_JOB,
    doc="A BroadcastJob runs a pod to its end on every node that fits.",
    service="jobs",
    rules=rules_in("flotilla_common.api.kinds.broadcastjob.api"),
    short_names=("bcj",),
    workers=Workers(8, "broadcastjob"),
)
