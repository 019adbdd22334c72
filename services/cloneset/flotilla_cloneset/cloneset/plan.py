"""Plans one pass over one CloneSet, from snapshot to plan (cloneset.md §4.2).

The steps, in order: revisions, ownership, claims, scale, refresh, update, history; then the status, which describes the
pods as they were found. Scaling and updating never happen in the same pass.
"""

from datetime import datetime

from flotilla_cloneset.cloneset.claims import clean_up, own_claims
from flotilla_cloneset.cloneset.classification import Classification, Criteria, classify
from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.numbers import targets
from flotilla_cloneset.cloneset.revisions import CODEC, find_revisions, in_place_spec, record_of, surplus
from flotilla_cloneset.cloneset.rollout import RECREATE, direction, plan_update, update_numbers
from flotilla_cloneset.cloneset.scale import plan_scale
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot
from flotilla_cloneset.cloneset.status import EXCEEDED, CloneSetStatusPlan, explain_unavailable, plan_status
from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.numbers import lenient_value
from flotilla_common.api.resources import POD
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import InPlaceUpdateStrategy
from flotilla_common.control.plan import Intent, Plan, Stage, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder, refused
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.causes import root_cause
from flotilla_common.workload.claims import keep_record
from flotilla_common.workload.inplace import InPlaceContext
from flotilla_common.workload.inplace.refresh import Due, stage_refreshes
from flotilla_common.workload.ownership import adopt, owner_reference, release
from flotilla_common.workload.predownload import ImagePulls, plan_ahead
from flotilla_common.workload.revision_codec import belongs, short_hash
from flotilla_common.workload.revisions import RevisionChoice


def plan(snapshot: CloneSetSnapshot, now: datetime) -> Plan:
    """Plan one pass. Invalid input in a CloneSet becomes a reason and never raises."""
    cloneset = snapshot.cloneset
    if cloneset.spec.replicas < 0:
        return refused("InvalidReplicas", f"nothing is done: spec.replicas is {cloneset.spec.replicas}")
    try:
        selector = Selector.of_workload(cloneset.spec.selector)
    except ValueError as error:
        return refused("InvalidSelector", f"nothing is done: {error}")
    try:
        revisions = find_revisions(snapshot, selector)
    except ValueError as error:
        return refused("InvalidTemplate", f"nothing is done: spec.template or spec.volumeClaimTemplates: {error}")
    builder = PlanBuilder()
    context = _survey(snapshot, now, selector, revisions, builder)
    if cloneset.metadata.deletion_timestamp is None:
        plan_predownload(context, builder)
        _act(context, builder)
        context.disruptions.stage(builder)
        _keep_history(context, builder)
    else:
        text = "the CloneSet is being deleted: its pods are left to garbage collection"
        builder.reason(State.PROGRESSING, "Terminating", text)
    causes = explain_unavailable(context, builder)
    return _finish(context, builder, plan_status(context, root_cause(causes, snapshot.failures)))


def _survey(
    snapshot: CloneSetSnapshot, now: datetime, selector: Selector, revisions: RevisionChoice, builder: PlanBuilder
) -> PlanContext:
    """Derive the actual and the desired state, and plan what must precede everything else."""
    cloneset = snapshot.cloneset
    spec = cloneset.spec
    criteria = Criteria(
        uid=cloneset.metadata.uid,
        selector=selector,
        update_revision=revisions.update.metadata.name,
        min_ready_seconds=spec.min_ready_seconds,
        pods_to_delete=frozenset(spec.scale_strategy.pods_to_delete),
        now=now,
    )
    classified = classify(snapshot.pods, criteria)
    claims = own_claims(cloneset, snapshot.claims)
    if cloneset.metadata.deletion_timestamp is None:
        builder.stage((revisions.writes,))
        released = release(cloneset.metadata.uid, POD, classified.strays)
        adopted = adopt(owner_reference(CLONE_SET, cloneset.metadata), POD, classified.orphans)
        builder.stage(released + adopted, stop_on_failure=False)
        if not spec.scale_strategy.enable_pvc_reuse:
            claims, chains = clean_up(claims, classified.active, classified.inactive)
            builder.stage(chains)
    want = targets(cloneset)
    for problem in want.problems:
        builder.reason(State.STUCK, "InvalidNumber", problem, symptom=True)
    return PlanContext(
        snapshot=snapshot,
        now=now,
        selector=selector,
        revisions=revisions,
        pods=classified,
        claims=claims,
        targets=want,
        disruptions=Disruptions(snapshot.budgets, snapshot.gates, now),
    )


def _act(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan the scale step or, if it changes nothing, the update step; and the refresh in any case."""
    numbers = update_numbers(context)
    moving = direction(context, numbers)
    builder.deadlines.until(context.pods.available_at)
    if "scale" in context.snapshot.failures:
        # Scaling fails, perhaps because of a quota. The update step then goes first, or it would never run.
        plan_refresh(context, builder, direction=moving)
        if not plan_update(context, numbers, builder):
            plan_scale(context, builder)
        return
    start = len(builder.stages)
    scaled = plan_scale(context, builder)
    plan_refresh(context, builder, direction=moving, at=start)
    if not scaled:
        plan_update(context, numbers, builder)


def _keep_history(context: PlanContext, builder: PlanBuilder) -> None:
    """Record the claim templates of the newest revision, and delete the oldest revisions."""
    revisions = context.revisions
    builder.stage((keep_record(revisions, record_of(context.snapshot.cloneset)),), stop_on_failure=False)
    live = {pod.revision for pod in context.snapshot.pods}
    live |= {revisions.current.metadata.name, revisions.update.metadata.name}
    deletes = surplus(context.snapshot, context.selector, live)
    builder.stage([(delete,) for delete in deletes[:MAX_CHAINS_PER_PASS]], stop_on_failure=False)


def _finish(context: PlanContext, builder: PlanBuilder, status: CloneSetStatusPlan) -> Plan:
    builder.deadlines.until(status.wake_at)
    builder.notes.update(status.notes)
    if status.overdue:
        builder.reason(State.STUCK, EXCEEDED, status.overdue, symptom=True)
    counts, want = context.pods.counts, context.targets
    numbers = {
        "replicas": want.replicas,
        "total": counts.replicas,
        "ready": counts.ready,
        "available": counts.available,
        "updated": counts.updated,
        "updatedAvailable": counts.updated_available,
        "expectedUpdated": want.expected_updated,
        "partition": want.partition,
        "maxUnavailable": want.max_unavailable,
        "maxSurge": want.max_surge,
    }
    return builder.plan(
        status=status.patch,
        urgent_status=status.patch is not None and (status.urgent or bool(context.pods.preparing_delete)),
        after_status=_prune(context.snapshot.cloneset, context.pods),
        numbers=numbers,
        settled=not builder.stages and _settled(context),
    )


def _settled(context: PlanContext) -> bool:
    """Report whether all pods exist, on their revision, with nothing left to refresh or delete."""
    pods = context.pods
    all_updated = pods.counts.updated == pods.counts.replicas == context.targets.replicas
    return all_updated and not pods.unsettled and not pods.planned


def _prune(cloneset: CloneSet, pods: Classification) -> tuple[Stage, ...]:
    """Remove names from podsToDelete that are not active pods of this CloneSet (cloneset.md §4.10)."""
    listed = cloneset.spec.scale_strategy.pods_to_delete
    if not listed:
        return ()
    active = {pod.metadata.name for pod in pods.active}
    kept = [name for name in listed if name in active]
    if len(kept) == len(listed):
        return ()
    body = {"spec": {"scaleStrategy": {"podsToDelete": kept or None}}}
    cause = "names in podsToDelete are gone"
    patch = patch_of(CLONE_SET, cloneset.metadata, Intent.UPDATE, cause, body=body, on_version=True)
    return (Stage(chains=((patch,),), stop_on_failure=False),)


def plan_refresh(context: PlanContext, builder: PlanBuilder, *, direction: int, at: int | None = None) -> None:
    """Plan the refresh as a stage at position `at`, or at the end, and fill in missing labels (§4.8 step 1).

    `direction`: where the update step moves pods, 1 to the update revision, -1 back to the current one, 0 nowhere. That
    step counts refreshed pods as the snapshot shows them, keeps their place in the order, and does not plan them again.
    """
    in_place = context.in_place
    stage_refreshes(builder, (_due(context, in_place, pod, direction) for pod in context.pods.unsettled), at=at)


def _due(context: PlanContext, in_place: InPlaceContext, pod: Pod, direction: int) -> Due:
    target = context.revisions.current if direction < 0 else context.revisions.update
    on_target = belongs(pod.revision, target.metadata.name)
    return Due(
        pod=pod,
        context=in_place,
        on_target=on_target,
        wanted=direction != 0 and not on_target,
        backfill={keys.TEMPLATE_HASH_LABEL: short_hash(pod.revision)} if pod.revision else None,
    )


FEW = 3
"""The number of pods up to which updating at once is faster than a pull job."""


def plan_predownload(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan image pull jobs, unless the snapshot has None for them: then pulling ahead is off."""
    jobs, revisions = context.snapshot.pull_jobs, context.revisions
    if jobs is None or revisions.writes:
        return
    cloneset, settings = context.snapshot.cloneset, _settings(context)
    pulls = ImagePulls(
        resource=CLONE_SET,
        metadata=cloneset.metadata,
        selector=cloneset.spec.selector,
        codec=CODEC,
        update=revisions.update,
        old=(revisions.current,),
        parallelism=settings.image_pre_download_parallelism,
        timeout_seconds=settings.image_pre_download_timeout_seconds,
    )
    plan_ahead(pulls, jobs, builder, lambda: _is_worth_it(context) if _is_time(context) else None)


def _settings(context: PlanContext) -> InPlaceUpdateStrategy:
    return context.rolling.in_place_update_strategy or InPlaceUpdateStrategy()


def _is_time(context: PlanContext) -> bool:
    """Report whether enough pods of the new revision are ready to pull its images ahead."""
    # A revision whose pods do not even start is not worth pulling.
    status = context.snapshot.cloneset.status
    ready = status.updated_ready_replicas if status.update_revision == context.revisions.update.metadata.name else 0
    return (_settings(context).image_pre_download_min_updated_ready_pods or 0) <= ready


def _is_worth_it(context: PlanContext) -> bool:
    """Report whether pods are updated in place, in several rounds."""
    want, spec = context.targets, context.snapshot.cloneset.spec
    if spec.update_strategy.rolling_update is None or context.rolling.pod_update_policy == RECREATE:
        return False
    if spec.replicas <= FEW:
        return False
    if want.partition == 0 and _all_at_once(context):
        return False
    revisions = context.revisions
    return in_place_spec(revisions.current, revisions.update, context.snapshot.gates) is not None


def _all_at_once(context: PlanContext) -> bool:
    """Report whether the update takes all pods at once. The default of maxUnavailable does not."""
    limit, replicas = context.rolling.max_unavailable, context.snapshot.cloneset.spec.replicas
    try:
        return limit is not None and lenient_value(limit, replicas, round_up=False) >= replicas
    except ValueError:
        return False  # reported where the number is used
