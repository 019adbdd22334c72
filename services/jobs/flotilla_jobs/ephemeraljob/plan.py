"""One pass over one EphemeralJob, from snapshot to plan (ephemeraljob.md §5)."""

from datetime import datetime

from flotilla_common.control.plan import Plan
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot


def plan(snapshot: EphemeralJobSnapshot, now: datetime) -> Plan:
    """What the job needs now."""
    return Plan()
