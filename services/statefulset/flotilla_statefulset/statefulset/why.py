"""Why a pod is not available, in Kubernetes' own words."""

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Condition
from flotilla_common.control.draft import Draft
from flotilla_common.control.wording import pods_word
from flotilla_common.workload.lifecycle import NORMAL
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.pods import traits

_ON_ITS_WAY = ("", "ContainerCreating", "PodInitializing")

LONGEST = 200
"""Characters of a kubelet's message that are told: the first of them name the image, or the back-off."""


def state_of(context: PlanContext, pod: Pod) -> str:
    """ "web-1 is Pending (PodScheduled: 0/3 nodes are available …)"."""
    name, kind = pod.metadata.name, traits(pod)
    if kind.terminating:
        return f"{name} is terminating"
    if kind.state not in ("", NORMAL):
        return f"{name} is in lifecycle state {kind.state}"
    if not kind.ready:
        return f"{name} is {_phase(pod)}{_told(pod)}"
    if (until := _available_at(context, pod)) is not None:
        return f"{name} is ready, and available at {until} (minReadySeconds {context.targets.min_ready_seconds})"
    return f"{name} has not finished its in-place update"


def _phase(pod: Pod) -> str:
    return "not ready" if pod.status.phase == "Running" else pod.status.phase or "not seen by anyone yet"


def _told(pod: Pod) -> str:
    """What holds a container up, or what the first of these conditions says, if it is false."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in _ON_ITS_WAY:
            return f" ({status.name}: {waiting.reason}{': ' if waiting.message else ''}{waiting.message[:LONGEST]})"
    for kind in ("PodScheduled", "InPlaceUpdateReady", "ContainersReady", "Ready"):
        condition = pod.conditions.get(kind)
        if condition is not None and condition.status == "False":
            return f" ({kind}: {_text(condition)})"
    return ""


def _text(condition: Condition) -> str:
    return condition.message or condition.reason or "False"


def _available_at(context: PlanContext, pod: Pod) -> str | None:
    for ordinal, moment in context.pods.waiting.items():
        if context.pods.by_ordinal.get(ordinal) is pod:
            return moment.strftime("%H:%M:%S")
    return None


def explain_progress(context: PlanContext, draft: Draft) -> None:
    """How far the update is, where no step of the pass has said what it does or waits for."""
    counts, targets = context.pods.counts, context.targets
    outdated = len(context.pods.outdated)
    if targets.on_delete and outdated:
        text = f"waiting for somebody to delete {pods_word(outdated)} of older revisions: type is OnDelete"
        draft.reason("OnDelete", text)
    elif targets.paused:
        text = f"paused by the user: {counts.updated} of {pods_word(targets.expected_updated)} updated"
        draft.reason("PausedByUser", text)
    elif draft.reasons:
        return
    elif outdated and counts.updated >= targets.expected_updated:
        draft.reason(
            "PartitionReached",
            f"{counts.updated} of {pods_word(counts.replicas)} updated, partition {targets.partition} keeps the other "
            f"{outdated} on older revisions",
        )
    elif context.pods.unavailable:
        pods = [
            context.pods.by_ordinal[one] for one in sorted(context.pods.unavailable) if one in context.pods.by_ordinal
        ]
        told = "; ".join(state_of(context, pod) for pod in pods[:3])
        more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
        draft.reason("WaitingForAvailability", f"waiting: {told}{more}", pods)
    else:
        draft.reason("Complete", f"{counts.updated} of {pods_word(counts.replicas)} updated, all available")
