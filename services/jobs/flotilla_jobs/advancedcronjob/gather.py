"""From mirror tables to snapshots: an AdvancedCronJob and its children."""

from flotilla_common.api.batch import Job
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, BroadcastJob
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.resources import JOB
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.watches import Watch
from flotilla_common.control.wiring import Wiring
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot

CRON_JOBS = Watch(ADVANCED_CRON_JOB, AdvancedCronJob, subresources=("status",))
JOBS = Watch(JOB, Job, owner=ADVANCED_CRON_JOB, writes=("create", "delete"))
BROADCAST_JOBS = Watch(BROADCAST_JOB, BroadcastJob, owner=ADVANCED_CRON_JOB, writes=("create", "delete"), optional=True)
LISTS = Watch(
    IMAGE_LIST_PULL_JOB, ImageListPullJob, owner=ADVANCED_CRON_JOB, writes=("create", "delete"), optional=True
)


class Gatherer:
    """Builds the snapshot of one AdvancedCronJob."""

    def __init__(self, wiring: Wiring) -> None:
        self._cron_jobs = wiring.table(CRON_JOBS)

    def gather(self, key: Key, memory: Memory) -> AdvancedCronJobSnapshot | None:
        """The AdvancedCronJob and its children; None when it does not exist."""
        job = self._cron_jobs.get(*key)
        return None if job is None else AdvancedCronJobSnapshot(job=job, notes=memory.notes)
