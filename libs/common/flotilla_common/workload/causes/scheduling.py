"""Pods without a node."""

from flotilla_common.api.core import Pod
from flotilla_common.workload.causes.cause import Around, Cause
from flotilla_common.workload.causes.claims import claim_cause
from flotilla_common.workload.causes.events import about
from flotilla_common.workload.causes.wording import bare

DEFAULT_SCHEDULER = "default-scheduler"


def scheduling_cause(pod: Pod, around: Around) -> Cause | None:
    """Why the pod has no node; None if it has one."""
    if pod.spec.node_name:
        return None
    condition = pod.conditions.get("PodScheduled")
    if pod.spec.scheduling_gates or (condition is not None and condition.reason == "SchedulingGated"):
        names = ", ".join(gate.name for gate in pod.spec.scheduling_gates) or "of its spec"
        return Cause(code="SchedulingGated", message=f"scheduling gate {names} holds it, until somebody removes that")
    told = condition.message if condition is not None and condition.status == "False" else _told_by_event(around)
    if (claim := claim_cause(pod, around)) is not None and (claim.stuck or "unbound" in told):
        return claim
    if told:
        return Cause(code="Unschedulable", message=f"no node takes it: {without_preemption(told)}")
    return _not_looked_at(pod)


def without_preemption(told: str) -> str:
    """What the scheduler says, unless it found pods to evict: that there are none is no cause of anything."""
    reasons, _, preemption = told.partition(" preemption: ")
    found_none = any(word in preemption for word in ("not helpful", "No preemption victims", "not eligible"))
    return bare(reasons if found_none or not preemption else told).rstrip(".")


def _told_by_event(around: Around) -> str:
    return next((event.message for event in about(around.events, "FailedScheduling")), "")


def _not_looked_at(pod: Pod) -> Cause:
    scheduler = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    made = pod.metadata.creation_timestamp
    text = f"scheduler {scheduler} has not looked at it yet"
    if scheduler != DEFAULT_SCHEDULER:
        text += ": is there a scheduler of that name?"
    return Cause(code="WaitingForScheduling", message=text, stuck=scheduler != DEFAULT_SCHEDULER, since=made)
