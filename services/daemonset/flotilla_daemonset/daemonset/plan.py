"""Plans one pass over one DaemonSet, from snapshot to plan (daemonset.md §4.3).

The steps, in order: revisions, ownership, what each node needs, the rolling update; before these, in any case, the
refresh of single pods; then history and status. Every pass sees the writes of earlier ones, so each is a full pass:
there are no expectations to wait for.
"""

from datetime import datetime

from flotilla_common.api import keys
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, RollingUpdate
from flotilla_common.api.numbers import integer, strict_value
from flotilla_common.api.resources import POD
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Plan, Reason, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder, refused
from flotilla_common.control.text import named
from flotilla_common.workload.budget import Disruptions
from flotilla_common.workload.inplace.refresh import Due, stage_refreshes
from flotilla_common.workload.ownership import adopt_orphans, release
from flotilla_common.workload.placement import Placement
from flotilla_common.workload.predicates import is_settled
from flotilla_common.workload.predownload import ImagePulls, is_decided, plan_no_pulls, plan_pulls, plan_removal
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.manage import plan_manage, plan_specified
from flotilla_daemonset.daemonset.numbers import targets
from flotilla_daemonset.daemonset.pod_actions import PodActions
from flotilla_daemonset.daemonset.pods import GENERATION_ANNOTATION, Criteria, classify, is_terminating, node_view
from flotilla_daemonset.daemonset.revisions import (
    CODEC,
    Revisions,
    find_revisions,
    forget_duplicates,
    hash_of,
    misplaced,
    move,
    surplus,
    upkeep,
)
from flotilla_daemonset.daemonset.rollout import plan_rollout
from flotilla_daemonset.daemonset.snapshot import DaemonSetSnapshot
from flotilla_daemonset.daemonset.status import Counts, count, explain, is_complete, plan_status

SELECTING_ALL = "This DaemonSet is selecting all pods. A non-empty selector is required."


def plan(snapshot: DaemonSetSnapshot, now: datetime) -> Plan:
    """Plan one pass. Invalid input in a DaemonSet becomes a reason and never raises."""
    daemonset = snapshot.daemonset
    if daemonset.metadata.deletion_timestamp is not None:
        text = "the DaemonSet is being deleted: its pods are left to garbage collection"
        return Plan(reasons=(Reason(State.PROGRESSING, "Terminating", text),))
    try:
        selector = Selector.compile(daemonset.spec.selector)
    except ValueError as error:
        return refused("InvalidSelector", f"nothing is done: spec.selector: {error}")
    if selector.empty:
        return refused("SelectingAll", SELECTING_ALL)
    try:
        placement = Placement.of_daemons(daemonset.spec.template)
        revisions = find_revisions(daemonset, tuple(snapshot.revisions), selector)
    except ValueError as error:
        return refused("InvalidTemplate", f"nothing is done: spec.template: {error}")
    context = _survey(snapshot, now, selector, placement, revisions)
    builder = PlanBuilder()
    for problem in context.targets.problems:
        builder.reason(State.STUCK, "InvalidNumber", problem, symptom=True)
    _own(context, builder)
    plan_predownload(context, builder)
    _act(context, builder)
    context.disruptions.stage(builder)
    _forget_history(context, builder)
    counts = count(context)
    explain(context, counts, builder)
    return _finish(context, counts, builder)


def _survey(
    snapshot: DaemonSetSnapshot, now: datetime, selector: Selector, placement: Placement, revisions: Revisions
) -> PlanContext:
    """Derive the actual and the desired state."""
    meta, spec = snapshot.daemonset.metadata, snapshot.daemonset.spec
    members = classify(snapshot.pods, snapshot.orphans, meta.uid, selector)
    criteria = Criteria(
        hashes=frozenset(hash_of(revision) for revision in (revisions.update, *revisions.duplicates)),
        generation=meta.annotations.get(GENERATION_ANNOTATION, ""),
        min_ready_seconds=max(spec.min_ready_seconds, 0),
        now=now,
    )
    view = node_view(snapshot.nodes, members.own, placement, criteria)
    return PlanContext(
        snapshot=snapshot,
        now=now,
        selector=selector,
        revisions=revisions,
        members=members,
        node_view=view,
        criteria=criteria,
        targets=targets(spec, view.desired),
        disruptions=Disruptions(snapshot.budgets, snapshot.gates, now),
    )


def _own(context: PlanContext, builder: PlanBuilder) -> None:
    """Write the new revision, merge equal revisions, release pods that no longer match, adopt matching orphans."""
    meta, members, revisions = context.daemonset.metadata, context.members, context.revisions
    builder.stage((revisions.writes,))
    builder.stage(upkeep(context.daemonset, revisions))
    moved = misplaced(revisions, members.own)
    builder.stage(move(revisions, moved))
    builder.stage(forget_duplicates(revisions))
    builder.stage(release(meta.uid, POD, members.strays), stop_on_failure=False)
    builder.stage(adopt_orphans(DAEMON_SET, meta, POD, members.orphans), stop_on_failure=False)
    for pod in (*moved, *members.strays, *members.orphans):
        builder.touch(pod)
    if members.orphans:
        text = f"adopting {named(members.orphans)}: they have no controller"
        builder.reason(State.PROGRESSING, "Adopting", text, members.orphans)


def _act(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan what nodes need and the rolling update; before both, the refresh of the pods that these leave alone."""
    start, actions = len(builder.stages), PodActions(context, builder)
    plan_manage(context, actions, builder)
    plan_specified(context, actions, builder)
    actions.stage_deletes()
    plan_rollout(context, actions, builder)
    actions.explain()
    plan_refresh(context, builder, at=start)


def _forget_history(context: PlanContext, builder: PlanBuilder) -> None:
    deletes = surplus(context.daemonset, context.revisions, context.members.own)
    builder.stage([(delete,) for delete in deletes[:MAX_CHAINS_PER_PASS]], stop_on_failure=False)


def _finish(context: PlanContext, counts: Counts, builder: PlanBuilder) -> Plan:
    want = context.targets
    if want.min_ready_seconds:
        for state in context.pending:
            for pod in state.living:
                at = context.criteria.available_at(pod)
                builder.deadlines.until(at if at is not None and at > context.now else None)
    status = plan_status(context, counts)
    numbers = {
        "desired": counts.desired,
        "current": counts.current,
        "ready": counts.ready,
        "available": counts.available,
        "updated": counts.updated,
        "misscheduled": counts.misscheduled,
        "partition": want.partition,
        "maxUnavailable": want.max_unavailable,
        "maxSurge": want.max_surge,
    }
    return builder.plan(
        status=status.patch,
        urgent_status=status.urgent,
        numbers=numbers,
        settled=not builder.stages and is_complete(context, counts),
    )


FINISHED = ("Failed", "Succeeded")


def plan_refresh(context: PlanContext, builder: PlanBuilder, *, at: int) -> None:
    """Plan the refresh as a stage at position `at`."""
    pods = (
        Due(pod=pod, context=context.in_place, on_target=context.criteria.is_updated(pod))
        for pod in context.members.own
        if not (is_settled(pod) or is_terminating(pod) or pod.status.phase in FINISHED)
    )
    stage_refreshes(builder, pods, at=at)


def plan_predownload(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan image pull jobs, unless the snapshot has None for them: then pulling ahead is off."""
    jobs, revisions, status = context.snapshot.pull_jobs, context.revisions, context.daemonset.status
    rolling = context.daemonset.spec.update_strategy.rolling_update
    if jobs is None or revisions.writes or rolling is None or context.targets.on_delete:
        return
    if status.update_revision == revisions.hash and status.updated_number_scheduled == status.desired_number_scheduled:
        plan_removal(jobs, builder)
    elif is_decided(revisions.update):
        return
    elif context.targets.partition == 0 and _all_at_once(rolling, context.targets.desired):
        plan_no_pulls(revisions.update, builder)
    else:
        plan_pulls(_pulls(context), builder)


def _all_at_once(rolling: RollingUpdate, desired: int) -> bool:
    """Report whether one batch takes all nodes."""
    limit = 1 if rolling.max_unavailable is None else rolling.max_unavailable
    try:
        return strict_value(limit, desired, round_up=True) >= desired
    except ValueError:
        return False  # reported where the number is used


def _pulls(context: PlanContext) -> ImagePulls:
    daemonset = context.daemonset
    annotations = daemonset.metadata.annotations
    return ImagePulls(
        resource=DAEMON_SET,
        metadata=daemonset.metadata,
        selector=daemonset.spec.selector,
        codec=CODEC,
        update=context.revisions.update,
        old=tuple(context.revisions.old),
        parallelism=integer(annotations.get(keys.PULL_PARALLELISM, "")),
        timeout_seconds=integer(annotations.get(keys.PULL_TIMEOUT_SECONDS, "")),
    )
