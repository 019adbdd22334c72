"""Causes in scheduling: pods without a node, and claims that are not bound or do not exist."""

from flotilla_common.api.core import PersistentVolumeClaim, Pod
from flotilla_common.workload.causes.cause import Cause, Claim, PodContext, about
from flotilla_common.workload.causes.text import bare

_FAILURES = ("ProvisioningFailed", "FailedBinding", "VolumeMismatch", "ClaimLost", "ClaimMisbound")
_WAITS = ("ExternalProvisioning", "Provisioning", "WaitForPodScheduled", "WaitForFirstConsumer")

DEFAULT_SCHEDULER = "default-scheduler"


def scheduling_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return why the pod has no node; None if it has one."""
    if pod.spec.node_name:
        return None
    condition = pod.conditions.get("PodScheduled")
    if pod.spec.scheduling_gates or (condition is not None and condition.reason == "SchedulingGated"):
        names = ", ".join(gate.name for gate in pod.spec.scheduling_gates) or "of its spec"
        return Cause(code="SchedulingGated", message=f"scheduling gate {names} holds it until the gate is removed")
    told = condition.message if condition is not None and condition.status == "False" else _told_by_event(around)
    if (claim := claim_cause(pod, around)) is not None and (claim.stuck or "unbound" in told):
        return claim
    if told:
        return Cause(code="Unschedulable", message=f"no node takes it: {without_preemption(told)}")
    return _not_looked_at(pod)


def without_preemption(told: str) -> str:
    """Return the scheduler's message, without its note on preemption unless it found pods to evict."""
    reasons, _, preemption = told.partition(" preemption: ")
    found_none = any(word in preemption for word in ("not helpful", "No preemption victims", "not eligible"))
    return bare(reasons if found_none or not preemption else told).rstrip(".")


def _told_by_event(around: PodContext) -> str:
    return next((event.message for event in about(around.events, "FailedScheduling")), "")


def _not_looked_at(pod: Pod) -> Cause:
    scheduler = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    made = pod.metadata.creation_timestamp
    text = f"scheduler {scheduler} has not looked at it yet"
    if scheduler != DEFAULT_SCHEDULER:
        text += ": is there a scheduler of that name?"
    return Cause(code="WaitingForScheduling", message=text, stuck=scheduler != DEFAULT_SCHEDULER, since=made)


def claim_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return the problem of the pod's first unbound claim; claims that wait for the pod come last."""
    found: list[Cause] = []
    for volume in pod.spec.volumes:
        source = volume.persistent_volume_claim
        known = around.claims.get(source.claim_name) if source is not None else None
        if source is not None and known is not None and (cause := _cause(source.claim_name, known)) is not None:
            found.append(cause)
    return min(found, key=lambda cause: not cause.stuck, default=None)


def _cause(name: str, known: Claim) -> Cause | None:
    claim = known.found
    if claim is None:
        return Cause(code="ClaimMissing", message=f"claim {name} does not exist")
    if claim.status.phase == "Bound":
        return None
    if claim.metadata.deletion_timestamp is not None:
        held = ", ".join(claim.metadata.finalizers)
        text = f"claim {name} is being deleted{f', held by finalizer {held}' if held else ''}"
        return Cause(code="ClaimTerminating", message=text)
    if claim.status.phase == "Lost":
        return Cause(code="ClaimLost", message=f"claim {name} has lost its volume: the PersistentVolume is gone")
    return _unbound(name, claim, known)


def _unbound(name: str, claim: PersistentVolumeClaim, known: Claim) -> Cause:
    class_name = claim.spec.storage_class_name
    told = f"claim {name} of {f'storage class {class_name}' if class_name else 'no storage class'} is not bound"
    for event in about(known.events, *_FAILURES):
        return Cause(code="ClaimNotBound", message=f"{told}: {bare(event.message)}")
    for event in about(known.events, *_WAITS):
        waits = event.reason in ("WaitForFirstConsumer", "WaitForPodScheduled")
        return Cause(code="ClaimNotBound", message=f"{told}: {bare(event.message)}", stuck=not waits)
    return Cause(code="ClaimNotBound", message=told, stuck=False)
