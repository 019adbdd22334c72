"""The status of an AdvancedCronJob (advancedcronjob.md §2.2)."""

from flotilla_common.api.kinds.advancedcronjob.types import (
    ADVANCED_CRON_JOB,
    AdvancedCronJobStatus,
    ObjectReference,
)
from flotilla_common.control.plan import Patch
from flotilla_common.control.writes import status_patch
from flotilla_jobs.advancedcronjob.context import PlanContext


def plan_status(context: PlanContext) -> Patch | None:
    """The write of the status; none if it is stored like this."""
    job = context.job
    status = AdvancedCronJobStatus(
        type=job.spec.template.chosen[0].kind,
        active=_references(context),
        last_schedule_time=context.last_run,
    )
    return status_patch(ADVANCED_CRON_JOB, job.metadata, job.status, status)


def _references(context: PlanContext) -> list[ObjectReference]:
    """One that is stored stays as it is: a version that is written with every change of a child would be news."""
    resource = context.job.spec.template.chosen[0]
    stored = {reference.uid: reference for reference in context.job.status.active}
    fresh = (
        ObjectReference(
            api_version=resource.api_version,
            kind=resource.kind,
            namespace=child.metadata.namespace,
            name=child.metadata.name,
            uid=child.metadata.uid,
            resource_version=child.metadata.resource_version,
        )
        for child in context.children.active
    )
    return [stored.get(reference.uid, reference) for reference in fresh]
