"""Updating one pod in place as its lifecycle allows: the user's hook is asked first (common.md §8.4)."""

from collections.abc import Mapping, Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.moments import later
from flotilla_common.control.draft import Waits
from flotilla_common.control.plan import Chain, Event, Intent
from flotilla_common.workload.inplace.context import InPlaceContext
from flotilla_common.workload.inplace.start import start
from flotilla_common.workload.inplace.state import UpdateSpec
from flotilla_common.workload.lifecycle import (
    NORMAL,
    PREPARING_NORMAL,
    PREPARING_UPDATE,
    UPDATED,
    UPDATING,
    hooked,
    write_state,
)
from flotilla_common.workload.podedit import PodEdit

_FRESH = ("", PREPARING_NORMAL, NORMAL)


class UpdateRefused(Exception):
    """A pod cannot be updated as the spec demands; `planned` says whether pods before it are, and `explained` also what
    stands in the way."""

    planned = False

    def __init__(self, text: str, pods: Sequence[Pod], why: str = "") -> None:
        super().__init__(text)
        self.pods = pods
        self.explained = f"{text}: {why}" if why else text


def update_in_place(
    pod: Pod,
    spec: UpdateSpec,
    context: InPlaceContext,
    *,
    revision_labels: Mapping[str, str],
    grace_seconds: int,
    waits: Waits,
) -> Chain:
    """The writes that start the update, or that ask the hook first; none while the hook holds the pod.

    `revision_labels` put the pod on the target revision. `waits` gets the end of the grace period.

    Raises UpdateRefused: the pod is in a lifecycle state in which it cannot be updated.
    """
    hook = context.lifecycle.in_place_update if context.lifecycle else None
    name = pod.metadata.name
    failed = Event(
        "FailedUpdatePodInPlace", f"failed to update pod {name} in-place(revision {spec.revision}): ", warning=True
    )
    if pod.state == UPDATED or (pod.state in _FRESH and hooked(hook, pod)):
        revision = context.revision_name(spec.revision)
        edit = PodEdit(pod, Intent.HOLD, f"prepare in-place update to {revision}", revision=revision)
        write_state(edit, PREPARING_UPDATE, context.lifecycle, context.now, rehook=pod.state == UPDATED)
        return edit.chain(on_failure=failed)
    if pod.state == PREPARING_UPDATE and hooked(hook, pod):
        return ()
    if pod.state not in (*_FRESH, PREPARING_UPDATE, UPDATING):
        raise UpdateRefused(f"not allowed to in-place update pod {name} in state {pod.state}", [pod])
    if grace_seconds > 0:
        waits.until(later(context.now, grace_seconds))
    done = f"successfully update pod {name} in-place(revision {spec.revision})"
    return start(
        pod,
        spec,
        context,
        revision_labels=revision_labels,
        grace_seconds=grace_seconds,
        on_success=Event("SuccessfulUpdatePodInPlace", done),
        on_failure=failed,
    )
