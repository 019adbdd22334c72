"""One pass over one AdvancedCronJob, from snapshot to plan (advancedcronjob.md §4.2)."""

from datetime import datetime

from flotilla_common.control.plan import Plan
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot


def plan(snapshot: AdvancedCronJobSnapshot, now: datetime) -> Plan:
    """What it needs now."""
    return Plan()
