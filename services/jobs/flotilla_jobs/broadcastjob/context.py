"""The shared view of one pass: the job, its nodes and pods, and the settings of its spec (broadcastjob.md §4.3)."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.broadcastjob.types import UNLIMITED, BroadcastJob
from flotilla_common.api.meta import later
from flotilla_common.api.numbers import lenient_value
from flotilla_common.control.plan import Frozen
from flotilla_common.workload.placement import node_of
from flotilla_common.workload.strict_placement import StrictPlacement
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot

ON_FAILURE = "OnFailure"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of a job by state."""

    active: Sequence[Pod]
    succeeded: int
    failed: Sequence[Pod]  # also active pods that restarted too often


def count(pods: Iterable[Pod], restart_limit: int) -> Counts:
    """Count the pods by state; a pod that is being deleted counts only if it had ended before."""
    active: list[Pod] = []
    failed: list[Pod] = []
    succeeded = 0
    for pod in pods:
        if pod.status.phase == "Succeeded":
            succeeded += 1
        elif pod.status.phase == "Failed":
            failed.append(pod)
        elif pod.metadata.deletion_timestamp is None:
            (failed if _gave_up(pod, restart_limit) else active).append(pod)
    return Counts(active=active, succeeded=succeeded, failed=failed)


def _gave_up(pod: Pod, restart_limit: int) -> bool:
    if pod.spec.restart_policy != ON_FAILURE:
        return False
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return sum(status.restart_count for status in statuses) > restart_limit


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes and pods matched with each other; names of nodes are sorted."""

    placed: dict[str, Pod]  # by node that should have a pod: its pod
    waiting: list[str]  # nodes that should have a pod and have none
    misplaced: list[tuple[Pod, str]]  # pods on nodes that should have none any more, and why
    excluded: dict[str, list[str]]  # names of nodes that get no pod, by reason
    duplicates: list[tuple[str, str]]  # (pod, node): further pods of a node

    @property
    def desired(self) -> int:
        """The number of nodes that should have a pod."""
        return len(self.placed) + len(self.waiting)


def node_view(nodes: Iterable[Node], pods: Collection[Pod], template: StrictPlacement) -> NodeView:
    """Match pods with nodes.

    An existing pod's own placement decides which nodes it fits. A pod that was created for a node which does not exist
    would wait for this node endlessly; it is deleted.
    """
    view = NodeView(placed={}, waiting=[], misplaced=[], excluded={}, duplicates=[])
    by_node = _by_node(pods, view)
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        pod = by_node.pop(name, None)
        why_not = (template if pod is None else StrictPlacement.of_pod(pod)).why_not(node)
        if why_not:
            view.excluded.setdefault(why_not, []).append(name)
            if pod is not None and pod.metadata.deletion_timestamp is None:
                view.misplaced.append((pod, why_not))
        elif pod is None:
            view.waiting.append(name)
        else:
            view.placed[name] = pod
    view.misplaced.extend((pod, "does not exist any more") for pod in by_node.values() if _waits(pod))
    return view


def _waits(pod: Pod) -> bool:
    """Report whether the pod waits for its node; a pod that was on it is garbage-collected with it."""
    return not pod.spec.node_name and pod.active


def _by_node(pods: Collection[Pod], view: NodeView) -> dict[str, Pod]:
    """Return the newest pod of each node, and record the others as duplicates."""
    by_node: dict[str, Pod] = {}
    for pod in sorted(pods, key=lambda pod: pod.metadata.seniority):
        if node := node_of(pod):
            if node in by_node:
                view.duplicates.append((pod.metadata.name, node))
            by_node[node] = pod
    return by_node


class PlanContext(Frozen):
    """The view of one pass."""

    snapshot: BroadcastJobSnapshot
    now: datetime
    node_view: NodeView
    counts: Counts
    start: datetime  # of the job
    parallelism: int | None  # None: cannot be parsed

    @property
    def job(self) -> BroadcastJob:
        """The job that is planned."""
        return self.snapshot.job

    @property
    def deadline(self) -> datetime | None:
        """The time at which the job fails if it has not ended, or None if it never does."""
        policy = self.job.spec.completion_policy
        if not policy.ends or policy.active_deadline_seconds is None:
            return None
        return later(self.start, policy.active_deadline_seconds)

    @property
    def is_complete(self) -> bool:
        """Report whether every node that should have a pod has an ended one.

        Pods that have to go are deleted first: the next pass does not count them any more.
        """
        return (
            self.job.spec.completion_policy.ends
            and bool(self.node_view.placed)
            and not self.node_view.waiting
            and not self.node_view.misplaced
            and all(not pod.active for pod in self.node_view.placed.values())
        )


def context_of(snapshot: BroadcastJobSnapshot, now: datetime) -> PlanContext:
    """Build the view of a pass. Raises ValueError if the template cannot be parsed."""
    job, now = snapshot.job, now.replace(microsecond=0)
    view = node_view(snapshot.nodes, snapshot.pods, StrictPlacement.of(job.spec.template))
    return PlanContext(
        snapshot=snapshot,
        now=now,
        node_view=view,
        counts=count(snapshot.pods, job.spec.failure_policy.restart_limit),
        start=job.status.start_time or now,
        parallelism=_parallelism(job, view.desired),
    )


def _parallelism(job: BroadcastJob, desired: int) -> int | None:
    wanted = job.spec.parallelism
    try:
        return lenient_value(UNLIMITED if wanted is None else wanted, desired, round_up=True)
    except ValueError:
        return None
