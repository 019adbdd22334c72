"""Plans one pass over one AdvancedCronJob, from snapshot to plan with its reasons (advancedcronjob.md §4.2).

The status is written first, and a pass that cannot write it does nothing: it holds the latest run, which may be in no
other place after a restart. A run is started by creating an object under a name that only this run has. Each pass
computes from scratch what is due, so an extra pass does no harm, and the next one is scheduled for the next run.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from flotilla_common.api.kinds.advancedcronjob.schedule import SEARCHED_YEARS
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJobStatus, ObjectReference
from flotilla_common.api.meta import in_zone, rfc3339
from flotilla_common.control.plan import Chain, Event, Intent, Patch, Plan, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named
from flotilla_common.control.writes import delete_of, status_patch
from flotilla_jobs.advancedcronjob.context import PlanContext, context_of
from flotilla_jobs.advancedcronjob.run import (
    LONGEST_NAME,
    MOST_MISSED,
    Timing,
    child_name,
    has_long_names,
    plan_run,
    read_schedule,
    report_failure,
    timing_of,
)
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot, Child

MARGIN = timedelta(milliseconds=10)
"""Delay of a pass after a run is due: timers and clocks differ by some milliseconds."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def plan(snapshot: AdvancedCronJobSnapshot, now: datetime) -> Plan:
    """Plan one pass. Never raises for what users can write into an AdvancedCronJob: faults become reasons."""
    context, builder = context_of(snapshot, now), PlanBuilder()
    context.note(builder)
    status = plan_status(context)
    builder.stage([(status,)] if status is not None else [])
    _plan_rest(context, builder)
    explain_runs(context, builder)
    return builder.plan(numbers=_numbers(context))


def _plan_rest(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan everything beside the status."""
    if context.job.metadata.deletion_timestamp is not None:
        builder.reason(State.PROGRESSING, "Terminating", "it is being deleted: no more runs are started")
        return
    plan_history(context, builder)
    if context.job.spec.paused:
        builder.reason(State.HELD, "PausedByUser", "paused by the user: spec.paused is true, no run is started")
        return
    try:
        schedule = read_schedule(context)
    except ValueError as error:
        builder.reason(State.STUCK, "UnparseableSchedule", f"no run is started: the schedule cannot be read: {error}")
        builder.tell_once(Event("UnparseableSchedule", str(error), warning=True), context.notes)
        return
    _plan_due(context, timing_of(context, schedule), builder)


def _plan_due(context: PlanContext, timing: Timing, builder: PlanBuilder) -> None:
    """Start the run that is due, and requeue for the next one."""
    report_failure(context, builder)
    if timing.too_many_since is not None:
        _give_up(context, timing.too_many_since, timing, builder)
    elif timing.due is not None:
        plan_run(context, timing.due, builder)
    if timing.next is not None:
        builder.deadlines.until(timing.next + MARGIN)
    explain_timing(context, timing, builder)


def _give_up(context: PlanContext, since: datetime, timing: Timing, builder: PlanBuilder) -> None:
    """Skip the missed runs, which are too many, and go on from now."""
    following = "" if timing.next is None else f", next run at {with_zone(timing.next, timing.zone)}"
    text = f"more than {MOST_MISSED} runs missed since {with_zone(since, timing.zone)}; they are skipped{following}"
    context.give_up(builder)
    builder.reason(State.NOTE, "TooManyMissedTimes", text)
    builder.tell_once(Event("TooManyMissedTimes", text, warning=True), context.notes)


def _numbers(context: PlanContext) -> dict[str, int]:
    children = context.children
    return {
        "active": len(children.active),
        "successful": len(children.successful),
        "failed": len(children.failed),
    }


def plan_history(context: PlanContext, builder: PlanBuilder) -> None:
    """Delete ended children except the latest of each sort (§4.7). A failed delete stops nothing else."""
    spec, children = context.job.spec, context.children
    chains = [
        *_beyond(context, children.failed, spec.failed_jobs_history_limit),
        *_beyond(context, children.successful, spec.successful_jobs_history_limit),
    ]
    builder.stage(chains, stop_on_failure=False)


def _beyond(context: PlanContext, ended: Sequence[Child], limit: int | None) -> Iterator[Chain]:
    """Yield the deletes of the children that started first; without a limit, all stay."""
    here = [child for child in ended if child.metadata.deletion_timestamp is None]
    surplus = 0 if limit is None else max(len(here) - max(limit, 0), 0)
    resource = context.job.spec.template.chosen[0]
    for child in sorted(here, key=lambda child: child.status.start_time or _NEVER)[:surplus]:
        yield (delete_of(resource, child.metadata, Intent.CLEAN_UP, f"history limit {limit}"),)


def plan_status(context: PlanContext) -> Patch | None:
    """Return the write of the status, or None if it is unchanged."""
    job = context.job
    status = AdvancedCronJobStatus(
        type=job.spec.template.chosen[0].kind,
        active=_references(context),
        last_schedule_time=context.last_run,
    )
    return status_patch(ADVANCED_CRON_JOB, job.metadata, job.status, status)


def _references(context: PlanContext) -> list[ObjectReference]:
    resource = context.job.spec.template.chosen[0]
    # A stored reference stays: a resourceVersion that follows every change of a child would change the status, too.
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


def explain_runs(context: PlanContext, builder: PlanBuilder) -> None:
    """Add the children that have not ended; their own reasons explain why."""
    active = context.children.active
    if active:
        started = "" if context.last_run is None else f", the latest was due at {rfc3339(context.last_run)}"
        builder.reason(State.WAITING, "StartedRun", f"{len(active)} running: {named(active)}{started}", active)


def explain_timing(context: PlanContext, timing: Timing, builder: PlanBuilder) -> None:
    """Add which runs were skipped, and when the next one is due."""
    if timing.late is not None:
        seconds = context.job.spec.starting_deadline_seconds
        text = f"the run of {rfc3339(timing.late)} was not started within startingDeadlineSeconds, {seconds}"
        builder.reason(State.NOTE, "TooLate", text)
    if context.floor is not None and timing.too_many_since is None:
        text = f"too many runs were missed: those up to {rfc3339(context.floor)} are skipped"
        builder.reason(State.NOTE, "TooManyMissedTimes", text)
    if timing.next is None:
        text = f"{context.job.spec.schedule!r} has no run within {SEARCHED_YEARS} years"
        builder.reason(State.STUCK, "NeverRuns", text)
        return
    builder.reason(State.WAITING, "Waiting", f"the next run is due at {with_zone(timing.next, timing.zone)}")
    if has_long_names(context.job, timing.next):
        name = child_name(context.job, timing.next)
        text = f"no run can start: {name} would have {len(name)} characters, and {LONGEST_NAME} are allowed"
        builder.reason(State.STUCK, "NameTooLong", text)


def with_zone(moment: datetime, zone: tzinfo) -> str:
    """Return the moment in UTC, and in the schedule's time zone."""
    if str(zone) == "UTC":
        return rfc3339(moment)
    return f"{rfc3339(moment)} ({in_zone(moment, zone).isoformat(timespec='seconds')} in {zone})"
