"""AdvancedCronJob: Jobs, BroadcastJobs or ImageListPullJobs by a schedule."""

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.kind import Kind, Workers, rules_in

KIND = Kind(
    resource=ADVANCED_CRON_JOB,
    doc="An AdvancedCronJob starts Jobs, BroadcastJobs or ImageListPullJobs by a schedule.",
    service="jobs",
    rules=rules_in("flotilla_common.api.kinds.advancedcronjob.api"),
    short_names=("acj",),
    workers=Workers(32, "advancedcronjob"),
    parts=(BROADCAST_JOB, IMAGE_LIST_PULL_JOB),
)
