"""Explains why pods are not available, and how far the update is."""

from collections.abc import Iterator
from heapq import nsmallest

from flotilla_common.api.core import Pod
from flotilla_common.api.rollout import Lifecycle
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import pods_word
from flotilla_common.workload.causes import LOOKED_AT, Around, cause_of, explain_pods, stuck_terminating
from flotilla_statefulset.statefulset.context import PlanContext


def state_of(context: PlanContext, pod: Pod) -> str:
    """Describe why a pod is not available: "web-1: image nginx:nope of container web: ErrImagePull: … not found"."""
    cause = cause_of(pod, _around(context))
    return f"{pod.metadata.name}: {cause.text if cause is not None else 'about to become available'}"


def explain_unavailable(context: PlanContext, builder: PlanBuilder) -> None:
    """Add the root causes of wanted pods that are not available, and of unwanted pods whose termination is stuck."""
    explain_pods(builder, _pods(context), _around(context))


def _around(context: PlanContext) -> Around:
    lifecycle = context.statefulset.spec.lifecycle or Lifecycle()
    return Around(now=context.now, lifecycle=lifecycle, min_ready_seconds=context.targets.min_ready_seconds)


def _pods(context: PlanContext) -> Iterator[Pod]:
    pods = context.pods
    there = (one for one in pods.unavailable if one in pods.by_ordinal)
    yield from (pods.by_ordinal[one] for one in nsmallest(LOOKED_AT, there))
    yield from (pod for one in pods.condemned if stuck_terminating(pod := pods.by_ordinal[one], context.now))


def explain_progress(context: PlanContext, builder: PlanBuilder) -> None:
    """Explain how far the update is, if no step of the pass has given a reason."""
    counts, targets = context.pods.counts, context.targets
    outdated = len(context.pods.outdated)
    if targets.on_delete and outdated:
        text = f"{pods_word(outdated)} of older revisions must be deleted manually: type is OnDelete"
        builder.reason(State.HELD, "OnDelete", text)
    elif targets.paused:
        text = f"paused by the user: {counts.updated} of {pods_word(targets.expected_updated)} updated"
        builder.reason(State.HELD, "PausedByUser", text)
    elif builder.reasons:
        return
    elif outdated and counts.updated >= targets.expected_updated:
        builder.reason(
            State.HELD,
            "PartitionReached",
            f"{counts.updated} of {pods_word(counts.replicas)} updated, partition {targets.partition} keeps the other "
            f"{outdated} on older revisions",
        )
    elif context.pods.unavailable:
        pods = [
            context.pods.by_ordinal[one] for one in sorted(context.pods.unavailable) if one in context.pods.by_ordinal
        ]
        states = "; ".join(state_of(context, pod) for pod in pods[:3])
        more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
        builder.reason(State.WAITING, "WaitingForAvailability", f"{states}{more}", pods)
    else:
        builder.reason(
            State.DONE, "Complete", f"{counts.updated} of {pods_word(counts.replicas)} updated, all available"
        )
