"""Finds the run that is due, starts it if the concurrency policy allows it, and deletes what it replaces.

See advancedcronjob.md §4.3, §4.5, §4.6. The name of a run's child is derived from the due time, so that no run is
started twice, even if replicas have different views.
"""

from datetime import datetime, tzinfo
from functools import lru_cache

import msgspec

from flotilla_common.api.documents import Json, mapping
from flotilla_common.api.kinds.advancedcronjob.schedule import Schedule
from flotilla_common.api.kinds.advancedcronjob.types import (
    ADVANCED_CRON_JOB,
    ALLOW,
    FORBID,
    REPLACE,
    SCHEDULED_AT,
    AdvancedCronJob,
)
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.meta import later, rfc3339
from flotilla_common.api.resources import JOB
from flotilla_common.control.plan import Create, Event, Frozen, Intent, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named
from flotilla_common.control.writes import create_of, delete_of
from flotilla_common.workload.ownership import owner_reference
from flotilla_jobs.advancedcronjob.context import PlanContext

MOST_MISSED = 100
"""Limit of missed runs: with more, the clock or the schedule is wrong, and none is started."""

FAILED_CREATE = "FailedCreate"
"""Event of a run that could not be started."""

NAME_TAKEN = "NameTaken"
"""Reason of a skipped run; also that of creates refused because the name is taken."""

CREATION = "create"
"""Phase of the write that starts a run."""

LONGEST_NAME = 63
"""Length limit for names of Jobs and BroadcastJobs: their pods have them in a label."""


class Timing(Frozen, kw_only=True):
    """The due, missed and next runs of a schedule at a moment."""

    zone: tzinfo  # of the schedule
    due: datetime | None = None  # the latest run that was missed, unless there are too many
    too_many_since: datetime | None = None  # too many were missed, counted from here
    late: datetime | None = None  # a run that was missed for longer than the deadline allows, and none since
    next: datetime | None  # the next run that is not due yet


def read_schedule(context: PlanContext) -> Schedule:
    """Parse the schedule of the AdvancedCronJob. Raises ValueError."""
    spec = context.job.spec
    return _parsed(spec.schedule, spec.time_zone, context.local)


def timing_of(context: PlanContext, schedule: Schedule) -> Timing:
    """Return the missed and the next runs. Runs before the deadline's window are missed for good."""
    now, since, deadline = context.now, context.since, context.job.spec.starting_deadline_seconds
    begin = since if deadline is None else max(since, later(now, -max(deadline, 0)))
    missed = schedule.missed(since, now, MOST_MISSED, begin)
    too_many = len(missed) > MOST_MISSED
    return Timing(
        zone=schedule.zone,
        due=missed[-1] if missed and not too_many else None,
        too_many_since=begin if too_many else None,
        late=None if missed or begin == since else next(iter(schedule.missed(since, now, 0)), None),
        next=next(schedule.runs(now if too_many else since, now), None),
    )


@lru_cache(maxsize=4096)
def _parsed(schedule: str, time_zone: str | None, local: tzinfo) -> Schedule:
    return Schedule.parse(schedule, time_zone, local)


def plan_run(context: PlanContext, run: datetime, builder: PlanBuilder) -> None:
    """Start the run, or give the reason why not."""
    job, active = context.job, context.children.active
    name, policy = child_name(job, run), policy_of(context)
    # The child may exist already, without the annotation of its due time.
    if any(child.metadata.name == name for child in context.snapshot.children):
        return
    if name in context.snapshot.taken:
        _skip(context, name, run, builder)
    elif active and policy == FORBID:
        text = f"the run of {rfc3339(run)} is put off: concurrencyPolicy is Forbid, and {named(active)} has not ended"
        builder.reason(State.WAITING, "ForbiddenByPolicy", text, active)
    else:
        if policy == REPLACE:
            _replace(context, run, builder)
        builder.stage([(creation(job, run, context.local),)])
        builder.reason(State.PROGRESSING, "Starting", f"starting the run of {rfc3339(run)} as {name}", [name])


def policy_of(context: PlanContext) -> str:
    """Return the concurrency policy, with admission's default."""
    pulls = context.job.spec.template.chosen[0] == IMAGE_LIST_PULL_JOB
    return context.job.spec.concurrency_policy or (REPLACE if pulls else ALLOW)


def report_failure(context: PlanContext, builder: PlanBuilder) -> None:
    """Send the event of a run that the previous pass could not start, once for all attempts."""
    if context.snapshot.failure:
        builder.tell_once(Event(FAILED_CREATE, context.snapshot.failure, warning=True), context.notes)


def _skip(context: PlanContext, name: str, run: datetime, builder: PlanBuilder) -> None:
    kind = context.job.spec.template.chosen[0].kind
    text = f"the run of {rfc3339(run)} is skipped: {kind} {name} exists and belongs to another owner"
    builder.reason(State.STUCK, NAME_TAKEN, text, [name])
    builder.tell_once(Event(FAILED_CREATE, text, warning=True), context.notes)


def _replace(context: PlanContext, run: datetime, builder: PlanBuilder) -> None:
    """Delete the active children. The run starts when the deletes are accepted, not when the pods are gone."""
    resource, active = context.job.spec.template.chosen[0], context.children.active
    if active:
        text = f"replacing {named(active)} by the run of {rfc3339(run)}: concurrencyPolicy is Replace"
        builder.reason(State.PROGRESSING, "Replacing", text, active)
    builder.stage(
        [
            (delete_of(resource, child.metadata, Intent.REPLACE, f"replaced by the run of {rfc3339(run)}"),)
            for child in active
            if child.metadata.deletion_timestamp is None
        ]
    )


def child_name(job: AdvancedCronJob, run: datetime) -> str:
    """Return the name of the child for a run."""
    return f"{job.metadata.name}-{int(run.timestamp())}"


def has_long_names(job: AdvancedCronJob, run: datetime) -> bool:
    """Report whether the apiserver will refuse the children because of long names."""
    labelled = job.spec.template.chosen[0] in (JOB, BROADCAST_JOB)
    return labelled and len(child_name(job, run)) > LONGEST_NAME


def creation(job: AdvancedCronJob, run: datetime, local: tzinfo) -> Create:
    """Return the write that starts a run; the child's annotation has the due time in the zone `local`."""
    resource, raw = job.spec.template.chosen
    template = mapping(msgspec.json.decode(raw) if bytes(raw) else None)
    given = mapping(template.get("metadata"))
    due = run.astimezone(local).isoformat(timespec="seconds").replace("+00:00", "Z")
    body: Json = {
        **resource.type_meta,
        "metadata": {
            "name": child_name(job, run),
            "namespace": job.metadata.namespace,
            "labels": mapping(given.get("labels")),
            "annotations": {**mapping(given.get("annotations")), SCHEDULED_AT: due},
            "ownerReferences": [owner_reference(ADVANCED_CRON_JOB, job.metadata)],
        },
        "spec": mapping(template.get("spec")),
    }
    return create_of(resource, body, Intent.CREATE, f"run of {due}", phase=CREATION)
