"""Updates chosen pods to their target revision: in place where possible and allowed, else by recreation."""

from collections.abc import Sequence

from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.pod_factory import revision_labels
from flotilla_cloneset.cloneset.revisions import CODEC, in_place_spec
from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.meta import controller_of
from flotilla_common.control.plan import Chain, Event, Intent, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.workload.inplace import UpdateRefused, update_in_place
from flotilla_common.workload.inplace.calculate import hindrances_between
from flotilla_common.workload.lifecycle import PREPARING_UPDATE
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.revision_codec import short_hash

RECREATE, IN_PLACE_ONLY = "ReCreate", "InPlaceOnly"


def plan_pod_updates(
    context: PlanContext, pods: Sequence[Pod], target: ControllerRevision, builder: PlanBuilder
) -> bool:
    """Plan the update of each pod to `target`. Return True if anything is written.

    Raises UpdateRefused when a pod cannot be updated as the spec demands; the pods before it are planned.
    """
    history = _history(context)
    chains: list[Chain] = []
    held: list[Pod] = []
    refusal: UpdateRefused | None = None
    for pod in pods:
        try:
            chain = _update(context, pod, history.get(short_hash(pod.revision)), target, builder)
        except UpdateRefused as error:
            refusal = error
            break
        if chain and context.disruptions.admits(pod, chain):
            builder.touch(pod)
            chains.append(chain)
        elif not chain and pod.state == PREPARING_UPDATE:
            held.append(pod)
    builder.stage(chains)
    if chains:
        builder.reason(State.PROGRESSING, "Updating", f"updating {pods_word(len(chains))} to {target.metadata.name}")
    if held:
        builder.reason(State.HELD, "WaitingForHook", f"the inPlaceUpdate hook holds {named(held)}", held)
    if refusal is not None:
        refusal.planned = bool(chains)
        raise refusal
    return bool(chains)


def _history(context: PlanContext) -> dict[str, ControllerRevision]:
    """Return revisions by hash. Own revisions override stray ones: CloneSets of equal templates have equal hashes."""
    uid = context.snapshot.cloneset.metadata.uid
    stray: dict[str, ControllerRevision] = {}
    own: dict[str, ControllerRevision] = {}
    for revision in context.snapshot.revisions:
        controller = controller_of(revision.metadata)
        mine = controller is not None and controller.uid == uid
        (own if mine else stray)[short_hash(revision.metadata.name)] = revision
    return stray | own


def _update(
    context: PlanContext, pod: Pod, old: ControllerRevision | None, target: ControllerRevision, builder: PlanBuilder
) -> Chain:
    policy = context.rolling.pod_update_policy or RECREATE
    if policy == RECREATE:
        return _recreate(pod, target)
    only = policy == IN_PLACE_ONLY
    gates = context.snapshot.gates
    spec = in_place_spec(old, target, gates, ignore_claims=only) if old is not None else None
    if spec is not None:
        strategy = context.rolling.in_place_update_strategy
        return update_in_place(
            pod,
            spec,
            context.in_place,
            revision_labels=revision_labels(target.metadata.name, short=gates.on("CloneSetShortHash")),
            grace_seconds=strategy.grace_period_seconds if strategy else 0,
            deadlines=builder.deadlines,
        )
    if only:
        text = f"find Pod {pod.metadata.name} update strategy is InPlaceOnly but can not update in-place"
        raise UpdateRefused(text, [pod], hindrances_between(CODEC, old, target, gates) if old is not None else "")
    return _recreate(pod, target)


def _recreate(pod: Pod, target: ControllerRevision) -> Chain:
    """Mark the pod; the scale step of a later pass deletes it within the budget and creates its replacement."""
    if keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels:
        return ()
    name, revision = pod.metadata.name, target.metadata.name
    edit = PodEdit(pod, Intent.RECREATE, f"recreate update to {revision}", revision=revision)
    edit.set_labels({keys.SPECIFIED_DELETE_LABEL: "true"})
    return edit.chain(
        on_success=Event(
            "SuccessfulUpdatePodReCreate",
            f"successfully patch pod {name} specified-delete for update(revision {revision})",
        ),
        on_failure=Event(
            "FailedUpdatePodReCreate",
            f"failed to patch pod specified-delete {name} for update(revision {revision}): ",
            warning=True,
        ),
    )
