"""What the plan for an AdvancedCronJob is made from."""

from collections.abc import Container, Mapping, Sequence

import msgspec

from flotilla_common.api.batch import Job
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.control.subject import Subject

Child = Job | BroadcastJob | ImageListPullJob


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What decides about plans beside the objects."""

    zone: str = "UTC"  # the time zone of this process


class AdvancedCronJobSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One AdvancedCronJob and its children."""

    job: AdvancedCronJob
    children: Sequence[Child] = ()  # of the template's kind that it controls, also those on their way out; by name
    taken: Container[str] = ()  # names of all objects of that kind in the namespace
    failure: str = ""  # what became of the child that the pass before tried to create, and why
    notes: Mapping[str, str] = {}  # what the pass before left
    options: Options = Options()

    @property
    def subject(self) -> Subject:
        """The AdvancedCronJob, as events and the bus name it."""
        return Subject.of(ADVANCED_CRON_JOB, self.job.metadata)
