"""AdvancedCronJob in its storage version, apps.kruise.io/v1beta1, and its conversion (advancedcronjob.md §2).

Templates stay raw: they are copied as documents, never through a partial type. v1alpha1 lacks imageListPullJobTemplate.
"""

import msgspec

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.meta import Model, Moment, ObjectMeta
from flotilla_common.api.resources import JOB, Resource
from flotilla_common.api.versions import Conversion, only_beta

ADVANCED_CRON_JOB = Resource("apps.kruise.io", "v1beta1", "advancedcronjobs", "AdvancedCronJob")

ALLOW, FORBID, REPLACE = "Allow", "Forbid", "Replace"
"""Concurrency policies."""

SCHEDULED_AT = "apps.kruise.io/scheduled-at"
"""The annotation of jobs with the time that they were due."""

_ABSENT = msgspec.Raw(b"")


class CronTemplate(Model):
    """The template of the jobs; exactly one member is set."""

    job_template: msgspec.Raw = _ABSENT
    broadcast_job_template: msgspec.Raw = _ABSENT
    image_list_pull_job_template: msgspec.Raw = _ABSENT

    @property
    def chosen(self) -> tuple[Resource, msgspec.Raw]:
        """Return the kind of the jobs and their template (advancedcronjob.md §4.2 step 2)."""
        if _given(self.job_template):
            return JOB, self.job_template
        if _given(self.image_list_pull_job_template):
            return IMAGE_LIST_PULL_JOB, self.image_list_pull_job_template
        return BROADCAST_JOB, self.broadcast_job_template


def _given(template: msgspec.Raw) -> bool:
    return bytes(template) not in (b"", b"null")


class AdvancedCronJobSpec(Model):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    paused: bool = False
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None
    template: CronTemplate = CronTemplate()


class ObjectReference(Model):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class AdvancedCronJobStatus(Model):
    type: str = ""  # Job, BroadcastJob, ImageListPullJob
    active: list[ObjectReference] = []
    last_schedule_time: Moment | None = None  # when the latest run was due that was started


class AdvancedCronJob(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: AdvancedCronJobSpec = AdvancedCronJobSpec()
    status: AdvancedCronJobStatus = AdvancedCronJobStatus()


_VERSIONS = Conversion(
    "AdvancedCronJob",
    to_beta=lambda _: None,
    to_alpha=lambda _: None,
    only_beta=only_beta("spec.template.imageListPullJobTemplate"),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
