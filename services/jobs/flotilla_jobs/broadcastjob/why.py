"""Explains to users the state of a BroadcastJob."""

from collections.abc import Sequence
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, nodes_word, pods_word
from flotilla_common.workload.causes import Around, explain_pods, stuck_terminating
from flotilla_common.workload.pernode import explain_excluded
from flotilla_common.workload.placement import node_of
from flotilla_jobs.broadcastjob.context import PlanContext, count
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot


def explain(context: PlanContext, builder: PlanBuilder) -> None:
    """Add the causes of pods that fail, do not start or do not go, and of nodes without a pod."""
    failed = context.counts.failed
    troubled = [pod for pod in context.counts.active if not pod.ready]
    troubled += [pod for pod in context.snapshot.pods if stuck_terminating(pod, context.now)]
    _explain_pods(context.snapshot, [*failed, *troubled], context.now, builder)
    if failed:
        text = f"{pods_word(len(failed))} failed: {named(failed)}"
        builder.reason(State.STUCK, "FailedPods", text, failed, symptom=True)
    if not context.node_view.desired:
        builder.reason(State.STUCK, "NoNodes", "no node matches: the job waits for one", symptom=True)
    elif not builder.reasons:
        _explain_progress(context, builder)
    explain_excluded(builder, context.node_view.excluded)


def _explain_progress(context: PlanContext, builder: PlanBuilder) -> None:
    desired, active = context.node_view.desired, context.counts.active
    done = sum(1 for pod in context.node_view.placed.values() if not pod.active)
    text = f"{done} of {nodes_word(desired)} done"
    if active or done < desired:
        builder.reason(State.WAITING, "Running", f"{text}, {pods_word(len(active))} at work", active)
    else:
        builder.reason(State.DONE, "AllNodesDone", f"{text}; completionPolicy Never: nodes that join get a pod, too")


def explain_end(snapshot: BroadcastJobSnapshot, now: datetime, builder: PlanBuilder) -> None:
    """Add how the job ended, and the pods that caused it."""
    job = snapshot.job
    (message,) = [each.message for each in job.status.conditions if each.type == job.status.verdict][:1]
    if job.status.verdict == "Failed":
        builder.reason(State.STUCK, "Failed", message, symptom=True)
    else:
        builder.reason(State.DONE, "Completed", message)
    failed = count(snapshot.pods, job.spec.failure_policy.restart_limit).failed
    _explain_pods(snapshot, failed, now, builder)


def _explain_pods(snapshot: BroadcastJobSnapshot, pods: Sequence[Pod], now: datetime, builder: PlanBuilder) -> None:
    names = {node_of(pod) for pod in pods}
    nodes = {node.metadata.name: node for node in snapshot.nodes if node.metadata.name in names}
    explain_pods(builder, pods, Around(now=now, nodes=nodes))
