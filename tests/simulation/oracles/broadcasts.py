"""BroadcastJobs: where pods are made and when, why one is taken away, and what may be said of a job (broadcastjob.md
§4.2 to §4.5).

Each pod that we make must be the only one of its job on a node that takes it, while fewer than `parallelism` are at
work and nothing speaks against it: a pause, a failure, an end. Each that we take away must have a reason.
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
from tests.simulation.cluster.fitting import lacks, repelled_by, selects
from tests.simulation.oracles.scene import Scene, Step, Workload
from tests.simulation.oracles.stands import Told, node_of

ENDED = ("Succeeded", "Failed")


class Course:
    """One job so far."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.looks: Told[Json] = Told()
        self.desired: Told[int] = Told()  # nodes that take a pod, or have one that they may keep
        self.failed: Told[int] = Told()  # pods

    def on(self, node: str) -> list[Pod]:
        """Its pods there, in whatever state."""
        return [pod for pod in self.workload.pods.values() if node_of(pod) == node]

    def active(self, job: Json) -> int:
        """How many of its pods are at work."""
        pods = (pod for pod in self.workload.pods.values() if pod.metadata.deletion_timestamp is None)
        return sum(pod.status.phase not in ENDED and not has_failed(pod, job) for pod in pods)


class Broadcasts:
    """The nodes as they were, and the course of each job."""

    def __init__(self) -> None:
        self._nodes: dict[str, Told[Json | None]] = {}
        self._courses: dict[str, Course] = {}

    def __call__(self, scene: Scene, step: Step) -> Iterator[str]:
        version, workload = step.version, step.workload
        if version.resource == EVENT:
            return
        if version.resource == NODE:
            self._nodes.setdefault(version.name, Told()).tell(scene.at, version.after)
        course = None
        if workload is not None and workload.resource == BROADCAST_JOB:
            course = self._courses.setdefault(workload.uid, Course(workload))
            if version.uid == workload.uid and version.after is not None:
                course.looks.tell(scene.at, version.after)
        for one in self._courses.values():
            self._look(scene, one)
        if course is not None and step.ours:
            yield from _Verdict(scene, course, self._nodes).of(step)

    def _look(self, scene: Scene, course: Course) -> None:
        job = course.looks.now
        wanted = [name for name, told in self._nodes.items() if told.now is not None and fits(pods_of(job), told.now)]
        course.desired.tell(scene.at, len(wanted))
        course.failed.tell(scene.at, sum(has_failed(pod, job) for pod in course.workload.pods.values()))


class _Verdict:
    """What is to be said about one step of ours."""

    def __init__(self, scene: Scene, course: Course, nodes: dict[str, Told[Json | None]]) -> None:
        self._scene = scene
        self._course = course
        self._nodes = nodes
        self._looks = list(course.looks.lately(scene.since))
        self._failed = list(course.failed.lately(scene.since))

    def of(self, step: Step) -> Iterator[str]:
        """What is wrong about it."""
        if step.version.resource == BROADCAST_JOB:
            yield from self._says(step)
        elif step.makes_a_pod and step.pod is not None:
            yield from self._makes(step.pod)
        elif step.version.resource == POD and step.marked_deleted and step.before is not None:
            yield from self._takes(step.before)

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
        """Those that have ended stay when the job fails."""
        failing = self._may_fail() or any(map(is_over, self._looks))
        killed = failing and pod.status.phase not in ENDED
        if not killed and not self._is_misfit(pod):
            yield f"deletes the pod of {node_of(pod)} without a reason"

    def _says(self, step: Step) -> Iterator[str]:
        """The job is written, or deleted."""
        before, after = step.version.before or {}, step.version.after
        if step.marked_deleted:
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
        """Nodes that are known to want a pod that has not ended."""
        for name, told in self._nodes.items():
            wanted = [
                there is not None and fits(pods_of(job), there)
                for there, job in product(told.lately(self._scene.since), self._looks)
            ]
            if all(wanted) and (not (pods := self._course.on(name)) or any(pod.active for pod in pods)):
                yield name

    def _may_fail(self) -> bool:
        """A pod has failed, or the deadline has passed."""
        fast = any(failure_policy(job) == "FailFast" for job in self._looks) and any(self._failed)
        late = any(self._has_passed(job, "startTime", "activeDeadlineSeconds") for job in self._looks)
        return fast or late

    def _has_passed(self, job: Json, since: str, limit: str) -> bool:
        """So many seconds of the completion policy have passed since that moment of the status."""
        begun = member(job, "status").get(since)
        seconds = member(job, "spec", "completionPolicy").get(limit)
        if begun is None or seconds is None:
            return False
        return datetime.fromisoformat(begun) + timedelta(seconds=seconds) <= self._scene.now

    def _is_misfit(self, pod: Pod) -> bool:
        """At some moment of late the node did not suit the pod, or was not there and the pod waited for it."""
        told = self._lately(node_of(pod))
        lately = [one for one in told if one is not None]
        waits_in_vain = len(lately) < len(told) and not pod.spec.node_name
        return waits_in_vain or any(not fits(pods_of(job), there) for job, there in product(self._looks, lately))

    def _lately(self, node: str) -> list[Json | None]:
        told = self._nodes.get(node)
        return list(told.lately(self._scene.since)) if told is not None else []

    def _counts(self) -> list[int]:
        return list(self._course.desired.lately(self._scene.since))


def fits(spec: Json, node: Json) -> bool:
    """The node takes such pods."""
    return selects(spec, node) and not repelled_by(spec, node) and not lacks(spec, node)


def pods_of(job: Json) -> Json:
    """The spec of its pods."""
    return member(job, "spec", "template", "spec")


def failure_policy(job: Json) -> str:
    """What a failed pod means."""
    return str(member(job, "spec", "failurePolicy").get("type", "FailFast"))


def parallelism(job: Json, desired: int) -> int:
    """How many pods may be at work."""
    return lenient_value(job["spec"].get("parallelism", 2147483647), desired, round_up=True)


def is_over(job: Json) -> bool:
    """It is complete, or has failed."""
    status = member(job, "status")
    verdicts = [one for one in mappings(status.get("conditions")) if one["type"] in ("Complete", "Failed")]
    return status.get("phase") == "failed" or bool(verdicts)


def has_failed(pod: Pod, job: Json) -> bool:
    """The pod failed, or was started again too often."""
    if pod.status.phase in ENDED or pod.spec.restart_policy != "OnFailure":
        return pod.status.phase == "Failed"
    restarts = sum(one.restart_count for one in pod.status.container_statuses)
    limit = member(job, "spec", "failurePolicy").get("restartLimit", 0)
    return pod.metadata.deletion_timestamp is None and restarts > limit
