"""One pass over one AdvancedCronJob, from snapshot to plan (advancedcronjob.md §4.2).

The status is written first, and nothing is done in a pass that cannot write it: it says which run was the latest, and
after a restart nothing else may say so. A run is started by creating an object under a name that only this run has.
Everything that time brings about is found out anew in each pass, so a pass too many does no harm, and one comes by
itself when the next run is due.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJobStatus, ObjectReference
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Chain, Event, Intent, Patch, Plan, State
from flotilla_common.control.writes import delete_of, status_patch
from flotilla_jobs.advancedcronjob.context import PlanContext, look
from flotilla_jobs.advancedcronjob.run import plan_run, tell_failure
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot, Child
from flotilla_jobs.advancedcronjob.timing import MOST_MISSED, Timing, look_at_clock, read_schedule
from flotilla_jobs.advancedcronjob.why import explain_runs, explain_timing, told

MARGIN = timedelta(milliseconds=10)
"""How long after a run is due it is looked for: timers and clocks differ by some milliseconds."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def plan(snapshot: AdvancedCronJobSnapshot, now: datetime) -> Plan:
    """Plan one pass. Never raises for what users can write into an AdvancedCronJob: it becomes a reason."""
    context, draft = look(snapshot, now), Draft()
    context.note(draft)
    status = plan_status(context)
    draft.stage([(status,)] if status is not None else [])
    _go_on(context, draft)
    explain_runs(context, draft)
    return draft.plan(numbers=_numbers(context))


def _go_on(context: PlanContext, draft: Draft) -> None:
    """What is done beside the status."""
    if context.job.metadata.deletion_timestamp is not None:
        draft.reason(State.PROGRESSING, "Terminating", "it is being deleted: no run is started any more")
        return
    plan_history(context, draft)
    if context.job.spec.paused:
        draft.reason(State.HELD, "PausedByUser", "paused by the user: spec.paused is true, no run is started")
        return
    try:
        schedule = read_schedule(context)
    except ValueError as error:
        draft.reason(State.STUCK, "UnparseableSchedule", f"no run is started: the schedule cannot be read: {error}")
        draft.tell_once(Event("UnparseableSchedule", str(error), warning=True), context.notes)
        return
    _follow(context, look_at_clock(context, schedule), draft)


def _follow(context: PlanContext, timing: Timing, draft: Draft) -> None:
    """Start what is due, and come back when more is."""
    tell_failure(context, draft)
    if timing.too_many_since is not None:
        _give_up(context, timing.too_many_since, timing, draft)
    elif timing.due is not None:
        plan_run(context, timing.due, draft)
    if timing.next is not None:
        draft.waits.until(timing.next + MARGIN)
    explain_timing(context, timing, draft)


def _give_up(context: PlanContext, since: datetime, timing: Timing, draft: Draft) -> None:
    """Too many runs were missed: go on from now, as if there had been none."""
    following = "" if timing.next is None else f", next run at {told(timing.next, timing.zone)}"
    text = f"more than {MOST_MISSED} runs missed since {told(since, timing.zone)}; they are skipped{following}"
    context.give_up(draft)
    draft.reason(State.NOTE, "TooManyMissedTimes", text)
    draft.tell_once(Event("TooManyMissedTimes", text, warning=True), context.notes)


def _numbers(context: PlanContext) -> dict[str, int]:
    children = context.children
    return {
        "active": len(children.active),
        "successful": len(children.successful),
        "failed": len(children.failed),
    }


def plan_history(context: PlanContext, draft: Draft) -> None:
    """Delete children that have ended, but for the latest of each sort (§4.7). A failure keeps nothing else from being
    done."""
    spec, children = context.job.spec, context.children
    chains = [
        *_beyond(context, children.failed, spec.failed_jobs_history_limit),
        *_beyond(context, children.successful, spec.successful_jobs_history_limit),
    ]
    draft.stage(chains, stop_on_failure=False)


def _beyond(context: PlanContext, ended: Sequence[Child], limit: int | None) -> Iterator[Chain]:
    """Deletes of those that started first. No limit: all stay."""
    here = [child for child in ended if child.metadata.deletion_timestamp is None]
    surplus = 0 if limit is None else max(len(here) - max(limit, 0), 0)
    resource = context.job.spec.template.chosen[0]
    for child in sorted(here, key=lambda child: child.status.start_time or _NEVER)[:surplus]:
        yield (delete_of(resource, child.metadata, Intent.CLEAN_UP, f"history limit {limit}"),)


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
