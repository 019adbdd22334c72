"""One pass over one BroadcastJob, from snapshot to plan (broadcastjob.md §4.2)."""

from datetime import datetime

from flotilla_common.control.plan import Plan
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot


def plan(snapshot: BroadcastJobSnapshot, now: datetime) -> Plan:
    """What the job needs now."""
    return Plan()
