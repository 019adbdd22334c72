"""BroadcastJobs: creation and deletion of their pods, and their status (broadcastjob.md §4.2 to §4.5).

Each pod that we create must be the only one of its job on a node that it fits, while fewer than `parallelism` are
active and the job is neither paused, nor failed, nor finished. Each deletion must have a reason.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mappings, member
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.numbers import lenient_value
from flotilla_common.api.resources import EVENT, NODE, POD
from flotilla_common.control.plan import Json
from tests.simulation.cluster.node_fit import lacks, repelled_by, selects
from tests.simulation.oracles.node_history import Timeline, node_of
from tests.simulation.oracles.view import Commit, View, Workload

ENDED = ("Succeeded", "Failed")


class JobHistory:
    """The history of one job."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.looks: Timeline[Json] = Timeline()
        self.desired: Timeline[int] = Timeline()  # nodes that take a pod, or have one that they may keep
        self.failed: Timeline[int] = Timeline()  # pods

    def on(self, node: str) -> list[Pod]:
        """Yield the job's pods on a node, in any state."""
        return [pod for pod in self.workload.pods.values() if node_of(pod) == node]

    def active(self, job: Json) -> int:
        """Return how many of the job's pods are active."""
        pods = (pod for pod in self.workload.pods.values() if pod.metadata.deletion_timestamp is None)
        return sum(pod.status.phase not in ENDED and not has_failed(pod, job) for pod in pods)


class Broadcasts:
    """The rule for BroadcastJobs: the states of the nodes over time, and the history of each job."""

    def __init__(self) -> None:
        self._nodes: dict[str, Timeline[Json | None]] = {}
        self._histories: dict[str, JobHistory] = {}

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version, workload = commit.version, commit.workload
        if version.resource == EVENT:
            return
        if version.resource == NODE:
            self._nodes.setdefault(version.name, Timeline()).record(view.at, version.after)
        history = None
        if workload is not None and workload.resource == BROADCAST_JOB:
            history = self._histories.setdefault(workload.uid, JobHistory(workload))
            if version.uid == workload.uid and version.after is not None:
                history.looks.record(view.at, version.after)
        for one in self._histories.values():
            self._look(view, one)
        if history is not None and commit.ours:
            yield from _Check(view, history, self._nodes).of(commit)

    def _look(self, view: View, history: JobHistory) -> None:
        job = history.looks.now
        wanted = [
            name
            for name, statuses in self._nodes.items()
            if statuses.now is not None and fits(pods_of(job), statuses.now)
        ]
        history.desired.record(view.at, len(wanted))
        history.failed.record(view.at, sum(has_failed(pod, job) for pod in history.workload.pods.values()))


class _Check:
    """A check of one commit of ours."""

    def __init__(self, view: View, history: JobHistory, nodes: dict[str, Timeline[Json | None]]) -> None:
        self._scene = view
        self._course = history
        self._nodes = nodes
        self._looks = list(history.looks.lately(view.since))
        self._failed = list(history.failed.lately(view.since))

    def of(self, commit: Commit) -> Iterator[str]:
        """Yield the breaches of the commit."""
        if commit.version.resource == BROADCAST_JOB:
            yield from self._says(commit)
        elif commit.makes_a_pod and commit.pod is not None:
            yield from self._makes(commit.pod)
        elif commit.version.resource == POD and commit.marked_deleted and commit.before is not None:
            yield from self._takes(commit.before)

    def _makes(self, pod: Pod) -> Iterator[str]:
        node = node_of(pod)
        known = [one for one in self._lately(node) if one is not None]
        if not any(fits(pods_of(job), there) for job, there in product(self._looks, known)):
            yield f"makes a pod for {node!r}, which does not take it"
        others = [one.metadata.name for one in self._course.on(node) if one.metadata.uid != pod.metadata.uid]
        if others:
            yield f"makes a pod beside {', '.join(others)} on {node}"
        if all(map(is_over, self._looks)):
            yield "makes a pod for a job that is over"
        if all(job["spec"].get("paused") for job in self._looks):
            yield "makes a pod for a job that is paused"
        if all(self._failed) and all(failure_policy(job) != "Continue" for job in self._looks):
            yield "makes a pod though one has failed"
        active = min(map(self._course.active, self._looks))
        most = max(parallelism(job, count) for job, count in product(self._looks, self._counts()))
        if active > most:
            yield f"makes a pod, the {active}th at work, {most} may be"

    def _takes(self, pod: Pod) -> Iterator[str]:
        """Check a deletion: pods that have ended stay when the job fails."""
        failing = self._may_fail() or any(map(is_over, self._looks))
        killed = failing and pod.status.phase not in ENDED
        if not killed and not self._is_misfit(pod):
            yield f"deletes the pod of {node_of(pod)} without a reason"

    def _says(self, commit: Commit) -> Iterator[str]:
        """Check a write or a deletion of the job."""
        before, after = commit.version.before or {}, commit.version.after
        if commit.marked_deleted:
            if not self._has_passed(before, "completionTime", "ttlSecondsAfterFinished"):
                yield "deletes a job before its time has come"
        elif after is not None and is_over(before):
            if member(before, "status") != member(after, "status"):
                yield "changes the status of a job that is over"
        elif after is not None and member(after, "status").get("phase") == "completed":
            yield from (f"is over, though {node} is not done" for node in self._undone())
        elif after is not None and member(after, "status").get("phase") == "failed" and not self._may_fail():
            yield "fails without a reason"

    def _undone(self) -> Iterator[str]:
        """Yield nodes that have long wanted a pod that has not ended."""
        for name, statuses in self._nodes.items():
            wanted = [
                there is not None and fits(pods_of(job), there)
                for there, job in product(statuses.lately(self._scene.since), self._looks)
            ]
            if all(wanted) and (not (pods := self._course.on(name)) or any(pod.active for pod in pods)):
                yield name

    def _may_fail(self) -> bool:
        """Report whether the job may fail: a pod has failed, or the deadline has passed."""
        fast = any(failure_policy(job) == "FailFast" for job in self._looks) and any(self._failed)
        late = any(self._has_passed(job, "startTime", "activeDeadlineSeconds") for job in self._looks)
        return fast or late

    def _has_passed(self, job: Json, since: str, limit: str) -> bool:
        """Report whether a time limit of the completion policy has passed since a time in the status."""
        begun = member(job, "status").get(since)
        seconds = member(job, "spec", "completionPolicy").get(limit)
        if begun is None or seconds is None:
            return False
        return datetime.fromisoformat(begun) + timedelta(seconds=seconds) <= self._scene.now

    def _is_misfit(self, pod: Pod) -> bool:
        """Report whether the pod did not fit the node recently, or waited for a node that did not exist."""
        statuses = self._lately(node_of(pod))
        lately = [one for one in statuses if one is not None]
        waits_in_vain = len(lately) < len(statuses) and not pod.spec.node_name
        return waits_in_vain or any(not fits(pods_of(job), there) for job, there in product(self._looks, lately))

    def _lately(self, node: str) -> list[Json | None]:
        statuses = self._nodes.get(node)
        return list(statuses.lately(self._scene.since)) if statuses is not None else []

    def _counts(self) -> list[int]:
        return list(self._course.desired.lately(self._scene.since))


def fits(spec: Json, node: Json) -> bool:
    """Report whether the node takes such pods."""
    return selects(spec, node) and not repelled_by(spec, node) and not lacks(spec, node)


def pods_of(job: Json) -> Json:
    """Return the spec of the job's pods."""
    return member(job, "spec", "template", "spec")


def failure_policy(job: Json) -> str:
    """Return the policy for failed pods."""
    return str(member(job, "spec", "failurePolicy").get("type", "FailFast"))


def parallelism(job: Json, desired: int) -> int:
    """Return how many pods may be active."""
    return lenient_value(job["spec"].get("parallelism", 2147483647), desired, round_up=True)


def is_over(job: Json) -> bool:
    """Report whether the job is complete or has failed."""
    status = member(job, "status")
    verdicts = [one for one in mappings(status.get("conditions")) if one["type"] in ("Complete", "Failed")]
    return status.get("phase") == "failed" or bool(verdicts)


def has_failed(pod: Pod, job: Json) -> bool:
    """Report whether the pod failed, or was restarted too often."""
    if pod.status.phase in ENDED or pod.spec.restart_policy != "OnFailure":
        return pod.status.phase == "Failed"
    restarts = sum(one.restart_count for one in pod.status.container_statuses)
    limit = member(job, "spec", "failurePolicy").get("restartLimit", 0)
    return pod.metadata.deletion_timestamp is None and restarts > limit
