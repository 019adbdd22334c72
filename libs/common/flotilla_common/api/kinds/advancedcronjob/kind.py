"""AdvancedCronJob: Jobs, BroadcastJobs or ImageListPullJobs by a schedule."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.kind import Kind, Workers

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.advancedcronjob import admission, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    return Rules(schema=crd.version, admission=Admission(mutate=admission.mutate, validate=admission.validate))


KIND = Kind(
    resource=ADVANCED_CRON_JOB,
    doc="An AdvancedCronJob starts Jobs, BroadcastJobs or ImageListPullJobs by a schedule.",
    service="jobs",
    rules=_rules,
    short_names=("acj",),
    workers=Workers(32, "advancedcronjob"),
    parts=(BROADCAST_JOB, IMAGE_LIST_PULL_JOB),
)
