"""Starts the in-place update of one pod: asks the user's hook first (common.md §8.4), then updates (§9.5).

The update starts with two writes. First the pod is made NotReady, so that no traffic reaches a container that is about
to stop; then, provided that nothing has written the pod in between, everything else is changed in one patch. When the
second write is lost, the pod shows a start without an update: the next start finds it NotReady and continues with the
second write.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from flotilla_common.api.core import Container, Pod
from flotilla_common.api.keys import (
    IN_PLACE_GRACE,
    IN_PLACE_READY,
    IN_PLACE_STATE,
    LEGACY_IN_PLACE_GRACE,
    LEGACY_IN_PLACE_STATE,
)
from flotilla_common.api.meta import Condition, later
from flotilla_common.api.workload import Lifecycle
from flotilla_common.control.plan import Chain, Event, Frozen, Intent, Patch
from flotilla_common.control.planbuilder import Deadlines
from flotilla_common.gates import Gates
from flotilla_common.workload.inplace.batches import write_batch
from flotilla_common.workload.inplace.state import InPlaceState, UpdateSpec, encode_grace
from flotilla_common.workload.lifecycle import (
    NORMAL,
    PREPARING_NORMAL,
    PREPARING_UPDATE,
    UPDATED,
    UPDATING,
    hooked,
    write_state,
)
from flotilla_common.workload.podedit import PodEdit, on_version
from flotilla_common.workload.readiness import recompute_ready
from flotilla_common.workload.revision_codec import RevisionCodec

STARTED = "StartInPlaceUpdate"
"""Reason of a false InPlaceUpdateReady."""

_FRESH = ("", PREPARING_NORMAL, NORMAL)


class InPlaceContext(Frozen):
    """The context of in-place updates, the same for all pods of a workload in one pass."""

    codec: RevisionCodec
    lifecycle: Lifecycle | None  # the workload's hooks
    gates: Gates
    server_version: str  # the apiserver's gitVersion: decides how cpu and memory are changed
    now: datetime
    has_states: bool = True  # an update puts the pod into a lifecycle state; not in a DaemonSet
    revision_names: Mapping[str, str] = {}  # full names by revision label of pods, where they differ
    drop_field_owners: bool = False  # makes this and all later writes of the pod cheaper for the apiserver (ADR 6)

    def revision_name(self, label: str) -> str:
        """Return the full name of the revision of a pod with this label."""
        return self.revision_names.get(label, label)


class UpdateRefused(Exception):
    """A pod cannot be updated as the spec demands.

    `planned` is whether pods before it are updated; `explained` adds the reason to the text.
    """

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
    deadlines: Deadlines,
) -> Chain:
    """Return the writes that start the update, or that ask the hook first; none while the hook holds the pod.

    `revision_labels` put the pod on the target revision. `deadlines` gets the end of the grace period.

    Raises UpdateRefused if the pod is in a lifecycle state in which it cannot be updated.
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
        deadlines.until(later(context.now, grace_seconds))
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


def start(
    pod: Pod,
    spec: UpdateSpec,
    context: InPlaceContext,
    *,
    revision_labels: Mapping[str, str],
    grace_seconds: int = 0,
    on_success: Event | None = None,
    on_failure: Event | None = None,
) -> Chain:
    """Make the pod NotReady, then change it; plan again after `grace_seconds`.

    `revision_labels` put the pod on the target revision.
    """
    now = context.now
    intent = spec.intent if grace_seconds <= 0 else Intent.GRACE
    before = _make_not_ready(pod, spec, context, intent, on_failure)
    edit = _edit(pod, spec, context, intent)
    edit.set_labels(revision_labels)
    if context.drop_field_owners:
        edit.drop_field_owners()
    if context.has_states:
        write_state(edit, UPDATING, None, now)
    state = InPlaceState(
        revision=spec.revision,
        update_timestamp=now,
        update_env_from_metadata=spec.env_from_metadata,
        update_resources=bool(spec.resources),
        update_images=bool(spec.images),
    )
    if grace_seconds <= 0:
        return write_batch(
            edit,
            spec,
            state,
            server_version=context.server_version,
            now=now,
            before=before,
            on_success=on_success,
            on_failure=on_failure,
        )
    edit.set_annotations({IN_PLACE_STATE: state.encode(), IN_PLACE_GRACE: encode_grace(spec, grace_seconds)})
    edit.set_annotations({LEGACY_IN_PLACE_STATE: None, LEGACY_IN_PLACE_GRACE: None})
    return on_version(pod, (*before, *edit.chain(on_success=on_success, on_failure=on_failure)))


def half_started(pod: Pod) -> bool:
    """Return whether the first write of a start happened, and the second did not or is not completed."""
    condition = pod.conditions.get(IN_PLACE_READY)
    return condition is not None and condition.status == "False" and condition.reason == STARTED


def _make_not_ready(
    pod: Pod, spec: UpdateSpec, context: InPlaceContext, intent: Intent, on_failure: Event | None
) -> tuple[Patch, ...]:
    """Return the write that makes the pod NotReady; none if it surely is already.

    In that case the next write fails if this view of the pod is out of date.
    """
    if not _disturbs(pod, spec, context.gates) or (half_started(pod) and not pod.ready):
        return ()
    edit = _edit(pod, spec, context, intent)
    edit.set_condition(Condition(type=IN_PLACE_READY, status="False", reason=STARTED, last_transition_time=context.now))
    recompute_ready(edit, context.now)
    return edit.chain(on_failure=on_failure)


def _edit(pod: Pod, spec: UpdateSpec, context: InPlaceContext, intent: Intent) -> PodEdit:
    revision = context.revision_name(spec.revision)
    return PodEdit(pod, intent, f"in-place update to {revision}", revision=revision)


def _disturbs(pod: Pod, spec: UpdateSpec, gates: Gates) -> bool:
    """Return whether the pod must be NotReady meanwhile: always, except for a resize without restarts."""
    if IN_PLACE_READY not in pod.gates:
        return False
    pure_resize = spec.resources and not spec.images and not spec.env_from_metadata
    if not pure_resize or not gates.on("InPlaceWorkloadVerticalScaling"):
        return True
    return any(_restarts(container, spec) for container in pod.spec.containers if container.name in spec.resources)


def _restarts(container: Container, spec: UpdateSpec) -> bool:
    changed = {name for entries in spec.resources[container.name].values() for name in entries}
    return any(
        policy.restart_policy == "RestartContainer" and policy.resource_name in changed
        for policy in container.resize_policy
    )
