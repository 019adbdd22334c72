"""Pods that find no node, as UnitedDeployments and WorkloadSpreads move them to other subsets."""

from datetime import datetime, timedelta

from flotilla_common.api.core import Pod
from flotilla_common.api.moments import later
from flotilla_common.control.draft import Waits


def is_unscheduled(pod: Pod) -> bool:
    """Return whether the scheduler says that it finds no node for the pod."""
    condition = pod.conditions.get("PodScheduled")
    return (
        pod.metadata.deletion_timestamp is None
        and pod.status.phase == "Pending"
        and not pod.spec.node_name
        and condition is not None
        and condition.status == "False"
        and condition.reason == "Unschedulable"
    )


def is_timed_out(pod: Pod, seconds: int, now: datetime, waits: Waits) -> bool:
    """Return whether the pod has found no node for longer than `seconds`; if it may still find one, the next pass is
    due at the end of that time."""
    created = pod.metadata.creation_timestamp
    if created is None or not is_unscheduled(pod):
        return False
    end = later(created, seconds)
    if end < now:
        return True
    waits.until(end + timedelta(milliseconds=1))  # it has to be past that moment
    return False
