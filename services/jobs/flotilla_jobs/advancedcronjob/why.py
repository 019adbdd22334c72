"""Explains to users the state of an AdvancedCronJob, and when it continues."""

from datetime import datetime, tzinfo

from flotilla_common.api.kinds.advancedcronjob.schedule import SEARCHED_YEARS
from flotilla_common.api.meta import in_zone, rfc3339
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named
from flotilla_jobs.advancedcronjob.context import PlanContext
from flotilla_jobs.advancedcronjob.run import LONGEST_NAME, Timing, child_name, has_long_names


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
