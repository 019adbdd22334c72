"""Detects unschedulable pods, which UnitedDeployments and WorkloadSpreads move to other subsets."""

from datetime import datetime, timedelta

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import later
from flotilla_common.control.planbuilder import Deadlines


def is_unscheduled(pod: Pod) -> bool:
    """Report whether the scheduler has found no node for the pod."""
    condition = pod.conditions.get("PodScheduled")
    return (
        pod.metadata.deletion_timestamp is None
        and pod.status.phase == "Pending"
        and not pod.spec.node_name
        and condition is not None
        and condition.status == "False"
        and condition.reason == "Unschedulable"
    )


def is_timed_out(pod: Pod, seconds: int, now: datetime, deadlines: Deadlines) -> bool:
    """Report whether the pod has been unschedulable for longer than `seconds`.

    If there is time left, the next pass is due at its end.
    """
    created = pod.metadata.creation_timestamp
    if created is None or not is_unscheduled(pod):
        return False
    end = later(created, seconds)
    if end < now:
        return True
    deadlines.until(end + timedelta(milliseconds=1))  # it must be past that moment
    return False
