"""The input of an AdvancedCronJob's plan."""

from collections.abc import Container, Mapping, Sequence

import msgspec

from flotilla_common.api.batch import Job
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.control.plan import ObjectRef

Child = Job | BroadcastJob | ImageListPullJob


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that planning depends on."""

    zone: str = "UTC"  # the time zone of this process


class AdvancedCronJobSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One AdvancedCronJob and its children."""

    job: AdvancedCronJob
    children: Sequence[Child] = ()  # of the template's kind, controlled by it, also those being deleted; by name
    taken: Container[str] = ()  # names of all objects of that kind in the namespace
    failure: str = ""  # why the previous pass failed to create a child
    notes: Mapping[str, str] = {}  # notes of the previous pass
    options: Options = Options()

    @property
    def subject(self) -> ObjectRef:
        """The AdvancedCronJob as the subject of events and bus records."""
        return ObjectRef.of(ADVANCED_CRON_JOB, self.job.metadata)
