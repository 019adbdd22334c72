"""The common view of sets with revisions and pods, for all kinds.

A kind joins with a function that reads its objects into this (`flotilla_insight/views`).
"""

from collections.abc import Callable, Iterator

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import SPECIFIED_DELETE_LABEL
from flotilla_common.api.meta import IntOrString, LabelSelector, ObjectMeta
from flotilla_common.api.workload import Lifecycle
from flotilla_common.control.plan import Reason, State
from flotilla_common.control.text import pods_word
from flotilla_common.workload.causes import Cause, PodContext, cause_of

OrderKey = tuple[int | str, ...]


class Numbers(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Numbers of pods, or of nodes with their pods."""

    desired: int
    total: int
    ready: int
    available: int
    updated: int
    updated_ready: int | None = None  # None: the kind does not count them
    updated_available: int | None = None
    expected_updated: int


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One set, by its spec and its status."""

    kind: str
    metadata: ObjectMeta
    selector: LabelSelector
    numbers: Numbers
    observed_generation: int
    update_revision: str
    current_revision: str
    partition: IntOrString = 0  # pods kept on old revisions, as written
    paused: bool = False
    on_delete: bool = False  # pods are updated when a user deletes them
    min_ready_seconds: int = 0
    lifecycle: Lifecycle = Lifecycle()
    details: tuple[str, ...] = ()  # further facts for people, a line each
    revision_of: Callable[[Pod], str] = lambda pod: pod.revision  # the revision in a pod's labels
    belongs: Callable[[str, str], bool] = str.__eq__  # (a pod's revision, name of a revision)
    order: Callable[[str], OrderKey] = lambda name: (name,)  # of pods of the same state, by their name or node
    by_node: bool = False  # pods are identified by their nodes, of which each has one, and not by their names

    def context(self, basis: PodContext) -> PodContext:
        """Return the context with what the spec says of all pods."""
        return msgspec.structs.replace(basis, lifecycle=self.lifecycle, min_ready_seconds=self.min_ready_seconds)


class PodFacts(msgspec.Struct, frozen=True):
    """A pod and its context."""

    pod: Pod
    context: PodContext = PodContext()

    @property
    def cause(self) -> Cause | None:
        """Return why it does not serve; None if nothing is wrong."""
        return cause_of(self.pod, self.context)

    @property
    def reason(self) -> str:
        """Return the reason that its kubelet or its containers report; empty without one."""
        status = self.pod.status
        if status.reason:
            return status.reason
        for container in (*status.init_container_statuses, *status.container_statuses):
            found = container.state.waiting or container.state.terminated
            if found is not None and found.reason not in ("", "Completed"):
                return found.reason
        return ""


def waits_for(workload: Workload) -> tuple[Reason, ...]:
    """Return a reason for each remaining step, besides the causes of its pods; empty at rest."""
    wanted, seen = workload.metadata.generation, workload.observed_generation
    if seen < wanted:
        text = f"generation {wanted} has not been observed yet, the last one is {seen}"
        return (Reason(State.WAITING, "NotPlanned", text),)
    return (*_counts(workload), *_limits(workload))


def pod_waits_for(facts: PodFacts) -> str:
    """Return what the pod waits for; empty if it serves, or only has to go on serving for a while."""
    if (cause := facts.cause) is not None:
        return "" if cause.code == "MinReadySeconds" else cause.text
    if SPECIFIED_DELETE_LABEL in facts.pod.metadata.labels:
        return "waits for its requested deletion"
    return ""


def _counts(workload: Workload) -> Iterator[Reason]:
    want, have = workload.numbers.desired, workload.numbers.total
    if have < want:
        text = f"{pods_word(want - have)} to be created: {have} of {want} exist"
        yield Reason(State.WAITING, "ScalingUp", text)
    elif have > want:
        text = f"{pods_word(have - want)} to be deleted: {have} exist, {want} are wanted"
        yield Reason(State.WAITING, "ScalingDown", text)
    elif (missing := want - workload.numbers.ready) > 0:
        yield Reason(State.WAITING, "WaitingForAvailability", f"{pods_word(missing)} to become ready")


def _limits(workload: Workload) -> Iterator[Reason]:
    numbers = workload.numbers
    old, todo = numbers.total - numbers.updated, numbers.expected_updated - numbers.updated
    if workload.update_revision == workload.current_revision:
        return
    if workload.paused:
        yield Reason(State.HELD, "PausedByUser", "paused by the user: unpause the update to continue")
    elif workload.on_delete and old > 0:
        yield Reason(
            State.HELD, "OnDelete", f"{pods_word(old)} of older revisions to be deleted by the user (OnDelete)"
        )
    elif not workload.on_delete and todo > 0:
        yield Reason(State.WAITING, "Updating", f"{pods_word(todo)} to be updated to {workload.update_revision}")
    elif not workload.on_delete and workload.partition and old > 0:
        older = workload.current_revision or "older revisions"
        text = f"partition {workload.partition} keeps {pods_word(old)} at {older}"
        yield Reason(State.HELD, "PartitionReached", text)
