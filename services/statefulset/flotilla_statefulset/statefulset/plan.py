"""Plans one pass over one StatefulSet, from snapshot to plan (statefulset.md §4.3).

The steps, in order: revisions, ownership, wanted pods, unwanted pods, update; before these, in any case, the refresh of
single pods; then history and status. Each step may end the pass for the steps after it: that is how OrderedReady does
one thing at a time.
"""

from datetime import datetime

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.numbers import integer, strict_value
from flotilla_common.api.resources import POD, REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Plan, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder, refused
from flotilla_common.control.text import named
from flotilla_common.control.writes import StatusPlan
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.claims import claim_templates, keep_record
from flotilla_common.workload.inplace.refresh import Due, stage_refreshes
from flotilla_common.workload.ownership import adopt_orphans, release
from flotilla_common.workload.predownload import ImagePulls, plan_ahead
from flotilla_common.workload.revisions import RevisionChoice
from flotilla_statefulset.ordinals import ordinal_of
from flotilla_statefulset.statefulset.claims import Claims, own_claims, volumes_fit
from flotilla_statefulset.statefulset.context import IN_PLACE_ONLY, RECREATE, PlanContext
from flotilla_statefulset.statefulset.deletion import plan_condemned
from flotilla_statefulset.statefulset.numbers import targets
from flotilla_statefulset.statefulset.pods import Criteria, Pods, sort_pods
from flotilla_statefulset.statefulset.replicas import plan_replicas
from flotilla_statefulset.statefulset.revisions import CODEC, find_revisions, in_place_spec, orphans, record_of, surplus
from flotilla_statefulset.statefulset.rollout import plan_update
from flotilla_statefulset.statefulset.snapshot import StatefulSetSnapshot
from flotilla_statefulset.statefulset.status import explain_progress, explain_unavailable, is_complete, plan_status
from flotilla_statefulset.statefulset.update_rules import may_be_updated


def plan(snapshot: StatefulSetSnapshot, now: datetime) -> Plan:
    """Plan one pass. Invalid input in a StatefulSet becomes a reason and never raises."""
    statefulset = snapshot.statefulset
    if statefulset.spec.replicas < 0:
        return refused("InvalidReplicas", f"nothing is done: spec.replicas is {statefulset.spec.replicas}")
    try:
        selector = Selector.of_workload(statefulset.spec.selector)
    except ValueError as error:
        return refused("InvalidSelector", f"nothing is done: {error}")
    try:
        claim_templates(statefulset.spec.volume_claim_templates)
    except ValueError as error:
        return refused("InvalidTemplate", f"nothing is done: spec.volumeClaimTemplates: {error}")
    try:
        revisions = find_revisions(snapshot, selector)
    except ValueError as error:
        return refused("InvalidTemplate", f"nothing is done: spec.template: {error}")
    builder = PlanBuilder()
    adopted = _adoptable(snapshot, selector)
    context = _survey(snapshot, now, selector, revisions, adopted)
    for problem in context.targets.problems:
        builder.reason(State.STUCK, "InvalidNumber", problem, symptom=True)
    if bare := [context.pods.by_ordinal[ordinal] for ordinal in sorted(context.pods.bare)]:
        text = "they lack volumes of volumeClaimTemplates, and InPlaceOnly recreates no pod: delete them manually"
        builder.reason(State.STUCK, "VolumesDiffer", f"{named(bare)}: {text}", bare)
    if statefulset.metadata.deletion_timestamp is None:
        _own(context, adopted, builder)
        plan_predownload(context, builder)
        _act(context, builder)
        context.disruptions.stage(builder)
        _keep_history(context, builder)
    else:
        text = "the StatefulSet is being deleted: its pods are left to garbage collection"
        builder.reason(State.PROGRESSING, "Terminating", text)
    explain_unavailable(context, builder)
    return _finish(context, builder, plan_status(context, {**snapshot.failures, **dict(builder.errors)}))


def _adoptable(snapshot: StatefulSetSnapshot, selector: Selector) -> list[Pod]:
    """Return the orphan pods to adopt by name and labels, of any revision (§4.3).

    A pod w-01 or w-2147483648 only looks like a pod of set w: the set would release it in its next pass.
    """
    meta = snapshot.statefulset.metadata
    if meta.deletion_timestamp is not None:
        return []
    return [
        pod
        for pod in snapshot.orphans
        if pod.metadata.deletion_timestamp is None
        and ordinal_of(pod.metadata.name, meta.name) >= 0
        and selector.matches(pod.metadata.labels)
    ]


def _survey(
    snapshot: StatefulSetSnapshot, now: datetime, selector: Selector, revisions: RevisionChoice, adopted: list[Pod]
) -> PlanContext:
    """Derive the actual and the desired state."""
    statefulset = snapshot.statefulset
    rolling = statefulset.spec.update_strategy.rolling_update
    want = targets(statefulset.spec, snapshot.gates)
    criteria = Criteria(
        uid=statefulset.metadata.uid,
        name=statefulset.metadata.name,
        selector=selector,
        ordinals=want.ordinals,
        update_revision=revisions.update.metadata.name,
        current_revision=revisions.current.metadata.name,
        min_ready_seconds=want.min_ready_seconds,
        gates=snapshot.gates,
        now=now,
    )
    pods = sort_pods(snapshot.pods, adopted, criteria)
    kept = (pods.revisions | {criteria.current_revision}) - {criteria.update_revision}
    held = [revision for revision in snapshot.revisions if revision.metadata.name in kept]
    claims = own_claims(statefulset, snapshot.claims, snapshot.gates, held)
    if claims.templates or claims.former:
        in_place_only = rolling is not None and rolling.pod_update_policy == IN_PLACE_ONLY
        _note_claims(pods, claims, criteria, in_place_only=in_place_only)
    return PlanContext(
        snapshot=snapshot,
        now=now,
        selector=selector,
        revisions=revisions,
        pods=pods,
        claims=claims,
        targets=want,
        disruptions=Disruptions(snapshot.budgets, snapshot.gates, now),
    )


def _note_claims(pods: Pods, claims: Claims, criteria: Criteria, *, in_place_only: bool) -> None:
    """Mark the wanted pods that lack a volume, or whose claims have wrong owner references.

    A pod's volumes never change: a pod that lacks one, of a template added later for instance, counts as outdated.
    """
    for ordinal, pod in pods.by_ordinal.items():
        if ordinal not in criteria.ordinals:
            continue
        if claims.wrongly_owned(ordinal, pod, scaled_away=False):
            pods.notable.add(ordinal)
        if pod.revision == criteria.update_revision and not volumes_fit(pod, ordinal, claims):
            (pods.bare if in_place_only else pods.unfit).add(ordinal)
    if pods.unfit:
        pods.outdated = sorted({*pods.outdated, *pods.unfit}, reverse=True)


def _own(context: PlanContext, adopted: list[Pod], builder: PlanBuilder) -> None:
    """Write the new revision, release and adopt pods, and remove owner references of claims that are wanted."""
    snapshot, meta = context.snapshot, context.statefulset.metadata
    builder.stage((context.revisions.writes,))
    raised = {write.name for write in context.revisions.writes}
    loose = [revision for revision in orphans(snapshot, context.selector) if revision.metadata.name not in raised]
    builder.stage(adopt_orphans(STATEFUL_SET, meta, REVISION, loose))
    builder.stage(release(meta.uid, POD, context.pods.strays))
    builder.stage(adopt_orphans(STATEFUL_SET, meta, POD, adopted))
    for pod in (*adopted, *context.pods.strays):
        builder.touch(pod)
    builder.stage([(patch,) for patch in context.claims.without_owner(context.targets.ordinals)], stop_on_failure=False)
    if adopted:
        builder.reason(State.PROGRESSING, "Adopting", f"adopting {named(adopted)}: they have no controller", adopted)


def _act(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan the steps until one of them ends the pass, and the refresh in any case."""
    start = len(builder.stages)
    if plan_replicas(context, builder) and plan_condemned(context, builder):
        plan_update(context, builder)
    plan_refresh(context, builder, at=start)
    explain_progress(context, builder)


def _keep_history(context: PlanContext, builder: PlanBuilder) -> None:
    """Record the claim templates of the newest revision, and delete the oldest revisions."""
    builder.stage((keep_record(context.revisions, record_of(context.statefulset)),), stop_on_failure=False)
    live = context.pods.revisions | {context.revisions.current.metadata.name, context.update_name}
    deletes = surplus(context.snapshot, context.selector, live)
    builder.stage([(delete,) for delete in deletes[:MAX_CHAINS_PER_PASS]], stop_on_failure=False)


def _finish(context: PlanContext, builder: PlanBuilder, status: StatusPlan) -> Plan:
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
        "unavailable": len(context.pods.unavailable) + context.pods.unseen,
        "condemned": len(context.pods.condemned),
    }
    settled = not builder.stages and is_complete(context) and not (context.pods.unsettled or context.pods.unfit)
    return builder.plan(status=status.patch, urgent_status=status.urgent, numbers=numbers, settled=settled)


def plan_refresh(context: PlanContext, builder: PlanBuilder, *, at: int) -> None:
    """Plan the refresh as a stage at position `at`, even beyond a pod that OrderedReady waits for (§4.11).

    An update that has begun and does not continue in this pass is undone: beyond such a pod it would never finish.
    """
    stage_refreshes(builder, (_due(context, ordinal) for ordinal in context.pods.unsettled), at=at)


def _due(context: PlanContext, ordinal: int) -> Due:
    pod = context.pods.by_ordinal[ordinal]
    on_target = pod.revision == context.update_name or not may_be_updated(context, ordinal, pod)
    return Due(pod=pod, context=context.in_place(pod), on_target=on_target)


FEW = 3
"""The number of pods up to which updating at once is faster than a pull job."""


def plan_predownload(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan image pull jobs, unless the snapshot has None for them: then pulling ahead is off."""
    jobs, revisions = context.snapshot.pull_jobs, context.revisions
    if jobs is None or revisions.writes:
        return
    pulls = ImagePulls(
        resource=STATEFUL_SET,
        metadata=context.statefulset.metadata,
        selector=context.statefulset.spec.selector,
        codec=CODEC,
        update=revisions.update,
        old=(revisions.current,),
        parallelism=_number(context, keys.PULL_PARALLELISM),
        timeout_seconds=_number(context, keys.PULL_TIMEOUT_SECONDS),
    )
    plan_ahead(pulls, jobs, builder, lambda: _is_worth_it(context) if _is_time(context) else None)


def _number(context: PlanContext, annotation: str) -> int | None:
    """Return the annotation's number; None if it is absent or unreadable."""
    number = integer(context.statefulset.metadata.annotations.get(annotation, ""))
    return number if number is not None and number >= 0 else None


def _is_time(context: PlanContext) -> bool:
    """Report whether enough pods of the new revision are ready to pull its images ahead."""
    # A revision whose pods do not even start is not worth pulling.
    status, replicas = context.statefulset.status, context.targets.replicas
    ready = status.updated_ready_replicas if status.update_revision == context.update_name else 0
    text = context.statefulset.metadata.annotations.get(keys.PULL_MIN_UPDATED_READY, "")
    try:
        number = integer(text)
        return (strict_value(text, replicas, round_up=True) if number is None else number) <= ready
    except ValueError:
        return True


def _is_worth_it(context: PlanContext) -> bool:
    """Report whether pods are updated in place, in several rounds."""
    targets = context.targets
    rolling = context.statefulset.spec.update_strategy.rolling_update
    if targets.on_delete or rolling is None or (rolling.pod_update_policy or RECREATE) == RECREATE:
        return False
    if targets.replicas <= FEW or (targets.partition == 0 and targets.max_unavailable >= targets.replicas):
        return False
    revisions = context.revisions
    return in_place_spec(revisions.current, revisions.update, context.snapshot.gates) is not None
