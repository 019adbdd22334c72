"""One pass over one AdvancedCronJob, from snapshot to plan (advancedcronjob.md §4.2).

The status is written first, and nothing is done in a pass that cannot write it: it says which run was the latest, and
after a restart nothing else may say so. A run is started by creating an object under a name that only this run has.
Everything that time brings about is found out anew in each pass, so a pass too many does no harm, and one comes by
itself when the next run is due.
"""

from datetime import datetime, timedelta

from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Plan, State
from flotilla_jobs.advancedcronjob.context import PlanContext, look
from flotilla_jobs.advancedcronjob.history import plan_history
from flotilla_jobs.advancedcronjob.run import plan_run, tell_failure
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot
from flotilla_jobs.advancedcronjob.status import plan_status
from flotilla_jobs.advancedcronjob.timing import MOST_MISSED, Timing, look_at_clock, read_schedule
from flotilla_jobs.advancedcronjob.why import explain_runs, explain_timing, told

MARGIN = timedelta(milliseconds=10)
"""How long after a run is due it is looked for: timers and clocks differ by some milliseconds."""


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
        context.tell_once(draft, "UnparseableSchedule", str(error))
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
    context.tell_once(draft, "TooManyMissedTimes", text)


def _numbers(context: PlanContext) -> dict[str, int]:
    children = context.children
    return {
        "active": len(children.active),
        "successful": len(children.successful),
        "failed": len(children.failed),
    }
