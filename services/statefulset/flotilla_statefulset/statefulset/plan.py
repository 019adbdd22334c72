"""One pass over one StatefulSet, from snapshot to plan (statefulset.md §4.3)."""

from datetime import datetime

from flotilla_common.control.plan import Plan
from flotilla_statefulset.statefulset.snapshot import StatefulSetSnapshot


def plan(snapshot: StatefulSetSnapshot, now: datetime) -> Plan:
    """Plan one pass."""
    return Plan()
