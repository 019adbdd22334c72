"""The state of a pod, and the reason why it does not serve."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import IN_PLACE_READY, SPECIFIED_DELETE_LABEL, STATE_LABEL
from flotilla_common.workload.causes import Cause, PodContext, cause_of
from flotilla_common.workload.lifecycle import NORMAL
from flotilla_console.blocks.types import Tone

RECENT_SECONDS = 10.0

_MEMO = "console cause"


class Seen(msgspec.Struct, frozen=True):
    """A pod, whether it serves and stays (or has done its work), and why not."""

    pod: Pod
    serving: bool
    cause: Cause | None

    @property
    def troubled(self) -> bool:
        """Report whether something is wrong with it, or under way."""
        return not self.serving or self.cause is not None

    @property
    def tone(self) -> Tone:
        """Return the judgement on the pod."""
        if self.cause is not None and self.cause.stuck:
            return "bad"
        return "ok" if self.serving else "busy"

    @property
    def state(self) -> str:
        """Return the phase, or a more specific reason."""
        if self.pod.metadata.deletion_timestamp is not None:
            return "Terminating"
        return _reason(self.pod) or self.pod.status.phase or "Pending"

    @property
    def waits_for(self) -> str:
        """Return what it waits for; empty if nothing is wrong."""
        if self.cause is not None:
            return self.cause.text
        return "its requested deletion" if SPECIFIED_DELETE_LABEL in self.pod.metadata.labels else ""


def _reason(pod: Pod) -> str:
    """Return the reason that the kubelet or a container reports; empty without one."""
    if pod.status.reason:
        return pod.status.reason
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        found = container.state.waiting or container.state.terminated
        if found is not None and found.reason not in ("", "Completed"):
            return found.reason
    return ""


def seen(pods: Iterable[Pod], context: PodContext) -> list[Seen]:
    """Return the pods with the causes that they show themselves."""
    return [see(pod, context) for pod in pods]


def see(pod: Pod, context: PodContext) -> Seen:
    """Return the pod with the cause that it and its context show; of one that serves only what holds it."""
    serving = serves(pod)
    return Seen(pod, serving, None if serving and not _is_held(pod) else cause_of(pod, context))


def serves(pod: Pod) -> bool:
    """Report whether the pod serves and stays, or has done its work.

    This is `is_serving` without the facts that it caches in each pod: a page may show ten thousand of them.
    """
    if pod.metadata.deletion_timestamp is not None:
        return False
    statuses = {one.type: one.status for one in pod.status.conditions}
    ready = statuses.get("Ready") == "True" and statuses.get(IN_PLACE_READY, "True") == "True"
    return pod.status.phase == "Succeeded" or (pod.status.phase == "Running" and ready)


def _is_held(pod: Pod) -> bool:
    """Report whether a lifecycle hook holds the pod."""
    return pod.metadata.labels.get(STATE_LABEL, NORMAL) not in ("", NORMAL)


def recent_cause(pod: Pod, now: datetime) -> Cause | None:
    """Return the cause that a pod shows itself, at most RECENT_SECONDS old: the fleet needs those of many pods."""
    known: tuple[datetime, Cause | None] | None = pod.memo.get(_MEMO)
    if known is None or (now - known[0]).total_seconds() > RECENT_SECONDS:
        known = pod.memo[_MEMO] = (now, cause_of(pod, PodContext(now=now)))
    return known[1]
