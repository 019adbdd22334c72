"""Keeps the pod not ready before and while its containers are restarted (containerrecreaterequest.md §6.4).

The finalizer is written first, so that the pod is released in any case; then the pod's own condition; and only after
that the condition of the request, from which the agent counts the grace period.
"""

from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import POD_READY, RECREATE_ACTIVE, RECREATE_UNREADY
from flotilla_common.api.kinds.containerrecreaterequest.conversion import GRACE_MESSAGE
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    PRE_RECREATE_GRACE,
    RECREATE_REQUEST,
    ContainerRecreateRequest,
)
from flotilla_common.api.meta import Condition
from flotilla_common.control.plan import Chain, Intent, Json, Patch
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import Blocker, add_blocker, remove_blocker

AGENT = "ContainerRecreateRequest"
"""Name of the holder in the message of the pod's condition."""


def wanted(request: ContainerRecreateRequest) -> bool:
    """Report whether the request asks for a grace period that has not begun."""
    return request.spec.strategy.unready_grace_period_seconds is not None and request.grace_since is None


def holding(request: ContainerRecreateRequest, pod: Pod, now: datetime) -> Chain:
    """Return the writes that make the pod not ready; none if it is already, or has no gate for it."""
    if POD_READY not in pod.gates:
        return ()
    edit = PodEdit(pod, Intent.UPDATE, "unready grace period", phase="")
    add_blocker(edit, _holder(request), now)
    return (*_with_finalizer(request), *edit.chain())


def began(now: datetime) -> Condition:
    """Return the condition that starts the grace period."""
    return Condition(
        type=PRE_RECREATE_GRACE,
        status="True",
        reason=PRE_RECREATE_GRACE,
        message=GRACE_MESSAGE,
        last_transition_time=now,
    )


def ending(request: ContainerRecreateRequest, pod: Pod | None, now: datetime) -> Chain:
    """Return the writes on pod and metadata when the request is over: release the pod, then the request.

    The label is removed too, so that agents no longer get the request; a request that is being deleted keeps it.
    """
    metadata: Json = {}
    given_back: Chain = ()
    if RECREATE_UNREADY in request.metadata.finalizers:
        metadata["finalizers"] = [name for name in request.metadata.finalizers if name != RECREATE_UNREADY]
        if pod is not None:
            edit = PodEdit(pod, Intent.UPDATE, "unready grace period is over", phase="")
            remove_blocker(edit, _holder(request), now)
            given_back = edit.chain()
    if RECREATE_ACTIVE in request.metadata.labels and request.metadata.deletion_timestamp is None:
        metadata["labels"] = {RECREATE_ACTIVE: None}
    return (*given_back, _metadata_patch(request, metadata, "release the request")) if metadata else ()


def _with_finalizer(request: ContainerRecreateRequest) -> Chain:
    if RECREATE_UNREADY in request.metadata.finalizers:
        return ()
    finalizers = [*request.metadata.finalizers, RECREATE_UNREADY]
    return (_metadata_patch(request, {"finalizers": finalizers}, "unready grace period"),)


def _metadata_patch(request: ContainerRecreateRequest, metadata: Json, cause: str) -> Patch:
    """Return a patch for this version only: a merge patch replaces the whole list of finalizers."""
    body = {"metadata": metadata}
    return patch_of(RECREATE_REQUEST, request.metadata, Intent.UPDATE, cause, body=body, on_version=True)


def _holder(request: ContainerRecreateRequest) -> Blocker:
    return Blocker(AGENT, f"{request.metadata.namespace}/{request.metadata.name}")
