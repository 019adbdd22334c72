"""What the plan for an AdvancedCronJob is made from."""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.batch import Job
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.control.subject import Subject

Child = Job | BroadcastJob | ImageListPullJob


class AdvancedCronJobSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One AdvancedCronJob and its children."""

    job: AdvancedCronJob
    children: Sequence[Child] = ()  # of the template's kind, which it controls, those on their way out included
    taken: Mapping[str, str] = {}
    notes: Mapping[str, str] = {}  # what the pass before left

    @property
    def subject(self) -> Subject:
        """The AdvancedCronJob, as events and the bus name it."""
        return Subject.of(ADVANCED_CRON_JOB, self.job.metadata)
