"""Claims that are not bound, or not there."""

from flotilla_common.api.core import PersistentVolumeClaim, Pod
from flotilla_common.workload.causes.cause import Around, Cause, Claim
from flotilla_common.workload.causes.events import about
from flotilla_common.workload.causes.wording import bare

_FAILURES = ("ProvisioningFailed", "FailedBinding", "VolumeMismatch", "ClaimLost", "ClaimMisbound")
_WAITS = ("ExternalProvisioning", "Provisioning", "WaitForPodScheduled", "WaitForFirstConsumer")


def claim_cause(pod: Pod, around: Around) -> Cause | None:
    """What is wrong with the first claim of the pod that is not bound; those that wait for the pod come last."""
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
