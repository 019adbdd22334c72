"""How one chosen pod gets to its target revision: in place where it is possible and allowed, else by recreation."""

from collections.abc import Sequence
from datetime import timedelta

from flotilla_cloneset.cloneset.bodies import revision_labels
from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.draft import Draft, named, pods_word
from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.meta import controller_of
from flotilla_common.control.plan import Chain, Event
from flotilla_common.workload.inplace import UpdateSpec, calculate, start
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
from flotilla_common.workload.revisions import short_hash

RECREATE, IN_PLACE_ONLY = "ReCreate", "InPlaceOnly"
_FRESH = ("", PREPARING_NORMAL, NORMAL)


class UpdateRefused(Exception):
    """A pod cannot be updated as the spec demands; `planned` says whether pods before it are."""

    planned = False

    def __init__(self, text: str, pods: Sequence[Pod]) -> None:
        super().__init__(text)
        self.pods = pods


def plan_pod_updates(context: PlanContext, pods: Sequence[Pod], target: ControllerRevision, draft: Draft) -> bool:
    """Plan the update of each pod to `target`. True when anything is written.

    Raises UpdateRefused at the first pod that cannot be updated as the spec demands; those before it are planned.
    """
    history = _history(context)
    chains: list[Chain] = []
    held: list[Pod] = []
    refusal: UpdateRefused | None = None
    for pod in pods:
        try:
            chain = _update(context, pod, history.get(short_hash(pod.revision)), target, draft)
        except UpdateRefused as error:
            refusal = error
            break
        if chain:
            draft.touch(pod)
            chains.append(chain)
        elif pod.state == PREPARING_UPDATE:
            held.append(pod)
    draft.stage(chains)
    if chains:
        draft.reason("Updating", f"updating {pods_word(len(chains))} to {target.metadata.name}")
    if held:
        draft.reason("WaitingForHook", f"waiting: the inPlaceUpdate hook holds {named(held)}", held)
    if refusal is not None:
        refusal.planned = bool(chains)
        raise refusal
    return bool(chains)


def _history(context: PlanContext) -> dict[str, ControllerRevision]:
    """Revisions by hash. CloneSets of equal templates have equal hashes: our own revisions outdo stray ones."""
    uid = context.snapshot.cloneset.metadata.uid
    stray: dict[str, ControllerRevision] = {}
    own: dict[str, ControllerRevision] = {}
    for revision in context.snapshot.revisions:
        controller = controller_of(revision.metadata)
        mine = controller is not None and controller.uid == uid
        (own if mine else stray)[short_hash(revision.metadata.name)] = revision
    return stray | own


def _update(
    context: PlanContext, pod: Pod, old: ControllerRevision | None, target: ControllerRevision, draft: Draft
) -> Chain:
    policy = context.rolling.pod_update_policy or RECREATE
    if policy == RECREATE:
        return _recreate(pod, target)
    only = policy == IN_PLACE_ONLY
    spec = calculate(old, target, gates=context.snapshot.gates, ignore_claim_hash=only) if old is not None else None
    if spec is not None:
        return _in_place(context, pod, spec, target, draft)
    if only:
        name = pod.metadata.name
        raise UpdateRefused(f"find Pod {name} update strategy is InPlaceOnly but can not update in-place", [pod])
    return _recreate(pod, target)


def _in_place(context: PlanContext, pod: Pod, spec: UpdateSpec, target: ControllerRevision, draft: Draft) -> Chain:
    """Ask the user's hook first, then update (common.md §8.4)."""
    lifecycle = context.snapshot.cloneset.spec.lifecycle
    hook = lifecycle.in_place_update if lifecycle else None
    name, revision = pod.metadata.name, target.metadata.name
    failed = Event(
        reason="FailedUpdatePodInPlace",
        message=f"failed to update pod {name} in-place(revision {revision}): ",
        warning=True,
    )
    if pod.state == UPDATED or (pod.state in _FRESH and hooked(hook, pod)):
        edit = PodEdit(pod, f"prepare in-place update to {revision}")
        write_state(edit, PREPARING_UPDATE, lifecycle, context.now, rehook=pod.state == UPDATED)
        return edit.chain(on_failure=failed)
    if pod.state == PREPARING_UPDATE and hooked(hook, pod):
        return ()
    if pod.state not in (*_FRESH, PREPARING_UPDATE, UPDATING):
        raise UpdateRefused(f"pod {name} is in the unknown lifecycle state {pod.state!r}", [pod])
    strategy = context.rolling.in_place_update_strategy
    grace = strategy.grace_period_seconds if strategy else 0
    if grace > 0:
        draft.wake(context.now + timedelta(seconds=grace))
    return start(
        pod,
        spec,
        revision_labels=revision_labels(revision, short=context.snapshot.gates.on("CloneSetShortHash")),
        gates=context.snapshot.gates,
        server_version=context.snapshot.options.server_version,
        now=context.now,
        grace_seconds=grace,
        drop_field_owners=context.snapshot.options.drop_field_owners,
        on_success=Event(
            reason="SuccessfulUpdatePodInPlace",
            message=f"successfully update pod {name} in-place(revision {revision})",
        ),
        on_failure=failed,
    )


def _recreate(pod: Pod, target: ControllerRevision) -> Chain:
    """Mark the pod; the scale step of a later pass deletes it within the budget and creates its replacement."""
    if keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels:
        return ()
    name, revision = pod.metadata.name, target.metadata.name
    edit = PodEdit(pod, f"recreate update to {revision}")
    edit.set_labels({keys.SPECIFIED_DELETE_LABEL: "true"})
    return edit.chain(
        on_success=Event(
            reason="SuccessfulUpdatePodReCreate",
            message=f"successfully patch pod {name} specified-delete for update(revision {revision})",
        ),
        on_failure=Event(
            reason="FailedUpdatePodReCreate",
            message=f"failed to patch pod specified-delete {name} for update(revision {revision}): ",
            warning=True,
        ),
    )
