"""One pass over one DaemonSet, from snapshot to plan (daemonset.md §4.3)."""

from datetime import datetime

from flotilla_common.control.plan import Plan
from flotilla_daemonset.daemonset.snapshot import DaemonSetSnapshot


def plan(snapshot: DaemonSetSnapshot, now: datetime) -> Plan:
    """Plan one pass. Never raises for what users can write into a DaemonSet: it becomes a reason."""
    return Plan()
