"""What all steps of a pass know: the job, its nodes and pods, and what the spec asks for (broadcastjob.md §4.3)."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.broadcastjob.types import UNLIMITED, BroadcastJob
from flotilla_common.api.moments import later
from flotilla_common.api.numbers import lenient_value
from flotilla_common.control.plan import Frozen
from flotilla_common.workload.placement import StrictPlacement, node_of
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot

ON_FAILURE = "OnFailure"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The pods, sorted out."""

    active: Sequence[Pod]
    succeeded: int
    failed: Sequence[Pod]  # those that restarted too often included, although they may go on


def count(pods: Iterable[Pod], restart_limit: int) -> Counts:
    """Sort the pods out. One on its way out counts only if it has ended before."""
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


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of nodes and pods. Names of nodes are in order."""

    placed: dict[str, Pod]  # by node that is to have a pod: the one that it has
    waiting: list[str]  # nodes that are to have a pod and have none
    misfits: list[tuple[Pod, str]]  # pods on nodes that are not to have one any more, and why
    excluded: dict[str, list[str]]  # names of nodes that get no pod, by why
    duplicates: list[tuple[str, str]]  # (pod, node): further pods of a node

    @property
    def desired(self) -> int:
        """How many nodes are to have a pod."""
        return len(self.placed) + len(self.waiting)


def survey(nodes: Iterable[Node], pods: Collection[Pod], template: StrictPlacement) -> Survey:
    """Put pods and nodes together. A pod that is there says by itself which nodes it fits; a pod that is made for a
    node which does not exist belongs nowhere, and if it waits for that node, it would wait for ever."""
    found = Survey(placed={}, waiting=[], misfits=[], excluded={}, duplicates=[])
    by_node = _by_node(pods, found)
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        pod = by_node.pop(name, None)
        why_not = (template if pod is None else StrictPlacement.of_pod(pod)).why_not(node)
        if why_not:
            found.excluded.setdefault(why_not, []).append(name)
            if pod is not None and pod.metadata.deletion_timestamp is None:
                found.misfits.append((pod, why_not))
        elif pod is None:
            found.waiting.append(name)
        else:
            found.placed[name] = pod
    found.misfits.extend((pod, "does not exist any more") for pod in by_node.values() if _waits(pod))
    return found


def _waits(pod: Pod) -> bool:
    """The pod has not come to its node; one that has is collected with it."""
    return not pod.spec.node_name and pod.active


def _by_node(pods: Collection[Pod], found: Survey) -> dict[str, Pod]:
    """The last pod of each node; those before it are told of."""
    by_node: dict[str, Pod] = {}
    for pod in sorted(pods, key=lambda pod: pod.metadata.seniority):
        if node := node_of(pod):
            if node in by_node:
                found.duplicates.append((pod.metadata.name, node))
            by_node[node] = pod
    return by_node


class PlanContext(Frozen):
    """One pass."""

    snapshot: BroadcastJobSnapshot
    now: datetime
    survey: Survey
    counts: Counts
    start: datetime  # of the job
    parallelism: int | None  # None: it cannot be read

    @property
    def job(self) -> BroadcastJob:
        """The job."""
        return self.snapshot.job

    @property
    def deadline(self) -> datetime | None:
        """When the job fails if it has not ended; None: never."""
        policy = self.job.spec.completion_policy
        if not policy.ends or policy.active_deadline_seconds is None:
            return None
        return later(self.start, policy.active_deadline_seconds)

    @property
    def is_complete(self) -> bool:
        """Every node that is to have a pod has one, and none of these is at work. Pods that have to go, go first: the
        pass that follows does not count them any more."""
        return (
            self.job.spec.completion_policy.ends
            and bool(self.survey.placed)
            and not self.survey.waiting
            and not self.survey.misfits
            and all(not pod.active for pod in self.survey.placed.values())
        )


def look(snapshot: BroadcastJobSnapshot, now: datetime) -> PlanContext:
    """Work out what there is and what is wanted. Raises ValueError: the template cannot be read."""
    job, now = snapshot.job, now.replace(microsecond=0)
    found = survey(snapshot.nodes, snapshot.pods, StrictPlacement.of(job.spec.template))
    return PlanContext(
        snapshot=snapshot,
        now=now,
        survey=found,
        counts=count(snapshot.pods, job.spec.failure_policy.restart_limit),
        start=job.status.start_time or now,
        parallelism=_parallelism(job, found.desired),
    )


def _parallelism(job: BroadcastJob, desired: int) -> int | None:
    wanted = job.spec.parallelism
    try:
        return lenient_value(UNLIMITED if wanted is None else wanted, desired, round_up=True)
    except ValueError:
        return None
