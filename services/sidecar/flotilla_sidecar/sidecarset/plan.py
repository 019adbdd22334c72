"""Plans one pass over one SidecarSet, from snapshot to plan (sidecarset.md §7.2).

The steps, in order: the revision of the spec, the pods and their status, idling of replaced containers, updates of
pods, deletion of old revisions.

There are no expectations (§7.12). The reply to each write is in the mirror before the next pass begins; after a write
of unknown outcome, or when a shard changes its owner, the pods are first read from the apiserver; and a plan from an
older version of a pod gets a conflict.
"""

from datetime import datetime

from flotilla_common.control.plan import Plan, Reason, State
from flotilla_common.control.planbuilder import PlanBuilder, refused
from flotilla_common.workload.budget import Disruptions
from flotilla_sidecar.sidecarset.context import PlanContext, targets
from flotilla_sidecar.sidecarset.desired import desired_sidecars
from flotilla_sidecar.sidecarset.pods import selected_namespaces, sort_pods
from flotilla_sidecar.sidecarset.revisions import bookkeeping, choose
from flotilla_sidecar.sidecarset.rollout import plan_rollout
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot
from flotilla_sidecar.sidecarset.status import explain_progress, explain_unready, plan_status


def plan(snapshot: SidecarSetSnapshot, now: datetime) -> Plan:
    """Plan one pass. Invalid input in a SidecarSet or a pod becomes a reason and never raises."""
    if snapshot.sidecar_set.metadata.deletion_timestamp is not None:
        text = "the SidecarSet is being deleted: pods keep what was injected into them"
        return Plan(reasons=(Reason(State.PROGRESSING, "Terminating", text),))
    try:
        context = _survey(snapshot, now)
    except ValueError as error:
        return refused("InvalidSpec", f"nothing is done: {error}")
    builder = PlanBuilder()
    for problem in context.targets.problems:
        builder.reason(State.STUCK, "InvalidNumber", problem, symptom=True)
    builder.stage((context.revisions.writes,))
    plan_rollout(context, builder)
    context.disruptions.stage(builder)
    explain_progress(context, builder)
    explain_unready(context, builder)
    builder.stage(bookkeeping(context), stop_on_failure=False)
    return _finish(context, builder)


def _survey(snapshot: SidecarSetSnapshot, now: datetime) -> PlanContext:
    """Derive the actual and the desired state. Raises ValueError if the spec cannot be read."""
    sidecar_set = snapshot.sidecar_set
    desired = desired_sidecars(sidecar_set)
    pods = sort_pods(snapshot.pods, desired, selected_namespaces(sidecar_set, snapshot.namespaces))
    return PlanContext(
        snapshot=snapshot,
        now=now,
        desired=desired,
        revisions=choose(snapshot),
        pods=pods,
        targets=targets(sidecar_set.spec.update_strategy, pods.matched),
        disruptions=Disruptions(snapshot.budgets, snapshot.gates, now),
    )


def _finish(context: PlanContext, builder: PlanBuilder) -> Plan:
    pods, want = context.pods, context.targets
    numbers = {
        "matched": pods.matched,
        "updated": pods.updated,
        "ready": pods.ready,
        "updatedReady": pods.updated_ready,
        "partition": want.partition,
        "maxUnavailable": want.max_unavailable,
        "notUpgradable": len(pods.unupgradable),
        "busy": len(pods.busy),
    }
    status = plan_status(context)
    settled = pods.complete and not builder.stages and not context.desired.hot
    return builder.plan(status=status.patch, urgent_status=status.urgent, numbers=numbers, settled=settled)
