"""BroadcastJob: a pod on every node that fits, run to its end."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.kind import Kind, Workers

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.broadcastjob import admission, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    return Rules(schema=crd.version, admission=Admission(mutate=admission.mutate, validate=admission.validate))


KIND = Kind(
    resource=BROADCAST_JOB,
    doc="A BroadcastJob runs a pod to its end on every node that fits.",
    service="jobs",
    rules=_rules,
    short_names=("bcj",),
    workers=Workers(8, "broadcastjob"),
)
