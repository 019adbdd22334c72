"""Computes which run is due, and when the next one is (advancedcronjob.md §4.3)."""

from datetime import datetime, tzinfo
from functools import lru_cache

from flotilla_common.api.kinds.advancedcronjob.schedule import Schedule
from flotilla_common.api.moments import later
from flotilla_common.control.plan import Frozen
from flotilla_jobs.advancedcronjob.context import PlanContext

MOST_MISSED = 100
"""Limit of missed runs: with more, the clock or the schedule is wrong, and none is started."""


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


def look_at_clock(context: PlanContext, schedule: Schedule) -> Timing:
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
