"""Causes before the containers exist: scheduling, claims, sandbox, volumes, images, order of launch priorities."""

from datetime import datetime

from flotilla_common.api.core import PersistentVolumeClaim, Pod, WaitingState
from flotilla_common.api.keys import LAUNCH_COMPLETED
from flotilla_common.workload.causes.cause import Cause, Claim, PodContext, about, bare
from flotilla_common.workload.predicates import launch_priority

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
    text = condition.message if condition is not None and condition.status == "False" else _event_message(around)
    if (claim := claim_cause(pod, around)) is not None and (claim.stuck or "unbound" in text):
        return claim
    if text:
        return Cause(code="Unschedulable", message=f"no node takes it: {without_preemption(text)}")
    return _not_looked_at(pod)


def without_preemption(text: str) -> str:
    """Return the scheduler's message, without its note on preemption unless it found pods to evict."""
    reasons, _, preemption = text.partition(" preemption: ")
    found_none = any(word in preemption for word in ("not helpful", "No preemption victims", "not eligible"))
    return bare(reasons if found_none or not preemption else text).rstrip(".")


def _event_message(around: PodContext) -> str:
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
    text = f"claim {name} of {f'storage class {class_name}' if class_name else 'no storage class'} is not bound"
    for event in about(known.events, *_FAILURES):
        return Cause(code="ClaimNotBound", message=f"{text}: {bare(event.message)}")
    for event in about(known.events, *_WAITS):
        waits = event.reason in ("WaitForFirstConsumer", "WaitForPodScheduled")
        return Cause(code="ClaimNotBound", message=f"{text}: {bare(event.message)}", stuck=not waits)
    return Cause(code="ClaimNotBound", message=text, stuck=False)


_PULL = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed")
IMAGE_REASONS = (*_PULL, "InvalidImageName", "ErrImageNeverPull", "ImageInspectError")
"""Waiting reasons of containers about their image."""

_VOLUMES = ("FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedUnMount")
_SANDBOX = ("FailedCreatePodSandBox", "FailedPodSandBoxStatus", "NetworkNotReady", "FailedCreatePodContainer")
_PROGRESS = ("Pulling", "Pulled", "Created", "Started")

ON_ITS_WAY = ("", "ContainerCreating", "PodInitializing")
"""Waiting reasons of containers without a known problem."""


def starting_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return the kubelet's current step or failure before any container runs; None after that."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    for event in about(around.events, *_PROGRESS, *_VOLUMES, *_SANDBOX):
        if event.reason in _PROGRESS:
            break  # an earlier failure is over
        kind = "FailedMount" if event.reason in _VOLUMES else "FailedCreatePodSandBox"
        code = event.reason if event.reason in ("FailedMount", "FailedAttachVolume", "NetworkNotReady") else kind
        return Cause(code=code, message=f"{_what(event.reason)}: {_event_text(event.message)}")
    if (claim := claim_cause(pod, around)) is not None and claim.stuck:
        return claim
    images = {one.name: one.image for one in (*pod.spec.init_containers, *pod.spec.containers)}
    for status in statuses:
        if status.state.waiting is not None and status.state.waiting.reason in ON_ITS_WAY:
            if (pulling := pulling_cause(status.name, images.get(status.name, ""), around)) is not None:
                return pulling
            text = f"container {status.name} is being created"
            return Cause(code="Starting", message=text, stuck=False, since=_scheduled_at(pod))
    return None if statuses else _not_begun(pod)


def _what(reason: str) -> str:
    return "a volume cannot be mounted" if reason in _VOLUMES else "the pod's sandbox cannot be made"


def _event_text(message: str) -> str:
    return bare(message.removeprefix("Failed to create pod sandbox: "))


def _not_begun(pod: Pod) -> Cause:
    text = f"the kubelet of node {pod.spec.node_name} has not started it yet"
    return Cause(code="Starting", message=text, stuck=False, since=_scheduled_at(pod))


def _scheduled_at(pod: Pod) -> datetime | None:
    scheduled = pod.conditions.get("PodScheduled")
    return scheduled.last_transition_time if scheduled is not None else pod.metadata.creation_timestamp


def waits_for_turn(pod: Pod, container: str) -> bool:
    """Report whether the container waits at its barrier for containers with a higher launch priority."""
    if pod.metadata.annotations.get(LAUNCH_COMPLETED) == "true":
        return False
    return any(one.name == container and launch_priority(one) is not None for one in pod.spec.containers)


def image_cause(name: str, image: str, waiting: WaitingState, around: PodContext) -> Cause:
    """Return why container `name` has no image. The two reasons between which a kubelet alternates share a code."""
    code = "ErrImagePull" if waiting.reason == "ImagePullBackOff" else waiting.reason
    text = bare(waiting.message) or _earlier_message(name, around) or "no reason is given"
    if code == "ErrImageNeverPull":
        text = "it is not on the node, and imagePullPolicy is Never"
    elif code == "InvalidImageName":
        text = text.removeprefix(f'Failed to apply default image tag "{image}": ')
    return Cause(code=code, message=f"image {image} of container {name} cannot be pulled ({code}): {text}")


def _earlier_message(name: str, around: PodContext) -> str:
    """Return the pull error from an event: kubelets before 1.31 only report "Back-off" while they wait."""
    for event in about(around.events, "Failed", container=name):
        if event.message.startswith("Failed to pull image") and (text := bare(event.message)):
            return text
    return ""


def pulling_cause(name: str, image: str, around: PodContext) -> Cause | None:
    """Return the cause of an image whose pull has begun and is not finished."""
    for event in about(around.events, "Pulling", "Pulled", "Failed", container=name):
        if event.reason == "Pulling":
            text = f"image {image} of container {name} is being pulled"
            return Cause(code="PullingImage", message=text, stuck=False, since=event.at)
        break
    return None
