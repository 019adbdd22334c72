"""Selects the pods of a job, in order, and determines the state of each (ephemeraljob.md §5.2).

They are selected again in every pass: when a pod goes away, the next one in order moves up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from flotilla_common.api.core import ContainerStatus, EphemeralContainer, Pod
from flotilla_common.api.kinds.ephemeraljob.types import (
    FAILED,
    JOB_UID_ENV,
    RUNNING,
    SUCCEEDED,
    UNKNOWN,
    WAITING,
    EphemeralJob,
)
from flotilla_common.api.meta import struct_cached_property

CANNOT_RUN = "RunContainerError"
"""Waiting reason of a container that could not be started; an ephemeral one is not retried."""


def container_state(status: ContainerStatus) -> str:
    """Return the state of one container, Unknown before its kubelet has reported it."""
    state = status.state
    if state.terminated is not None:
        if state.terminated.exit_code != 0:
            return FAILED
        return SUCCEEDED if state.terminated.finished_at is not None else UNKNOWN
    if state.running is not None:
        return RUNNING
    if state.waiting is None:
        return UNKNOWN
    return FAILED if state.waiting.reason == CANNOT_RUN else WAITING


def pod_state(containers: Mapping[str, str], names: Collection[str]) -> str:
    """Return the state of a pod from those of its containers; `names` are all containers of the template."""
    states = set(containers.values())
    if FAILED in states:
        return FAILED
    if names and all(containers.get(name) == SUCCEEDED for name in names):
        return SUCCEEDED
    return next((state for state in (RUNNING, WAITING) if state in states), UNKNOWN)


class Target(msgspec.Struct, frozen=True):
    """A pod of the job."""

    pod: Pod
    injected: frozenset[str]  # names of the job's containers that it has
    containers: Mapping[str, str]  # their states by name, where the kubelet has reported them
    state: str

    @property
    def at_work(self) -> bool:
        """Report whether it has containers of the job that have not ended, and counts for parallelism.

        A pod counts from its injection on, before the kubelet's first report, and no longer once it has failed.
        """
        if not self.injected or self.state in (SUCCEEDED, FAILED):
            return False
        return self.state != UNKNOWN or any(self.containers.get(name) != SUCCEEDED for name in self.injected)


class TargetPods(msgspec.Struct, frozen=True, dict=True):
    """The pods of the job in their order, and those that cannot be among them."""

    chosen: Sequence[Target]
    conflicts: Sequence[Pod]  # another's container has one of the names, which cannot be freed

    @classmethod
    def of(cls, job: EphemeralJob, pods: Iterable[Pod]) -> "TargetPods":
        """Build the targets from the pods that match."""
        names, uid = job.spec.template.names, job.metadata.uid
        chosen: list[Target] = []
        conflicts: list[Pod] = []
        for pod in sorted((pod for pod in pods if pod.active), key=lambda pod: pod.metadata.seniority):
            same_names = [container for container in pod.spec.ephemeral_containers if container.name in names]
            if all(is_own(container, uid) for container in same_names):
                chosen.append(_target(pod, frozenset(container.name for container in same_names), names))
            else:
                conflicts.append(pod)
        limit = job.spec.replicas
        return cls(chosen if limit is None else chosen[: max(limit, 0)], conflicts)

    @struct_cached_property
    def open(self) -> Sequence[Target]:
        """Return the pods without a container of the job."""
        return [target for target in self.chosen if not target.injected]

    @struct_cached_property
    def at_work(self) -> Sequence[Target]:
        """Return the pods that parallelism counts."""
        return [target for target in self.chosen if target.at_work]

    def of_state(self, state: str) -> Sequence[Target]:
        """Return the pods in this state."""
        return [target for target in self.chosen if target.state == state]


def is_own(container: EphemeralContainer, uid: str) -> bool:
    """Report whether the job with this uid has injected the container."""
    return any(env.name == JOB_UID_ENV and env.value == uid for env in container.env)


def _target(pod: Pod, injected: frozenset[str], names: frozenset[str]) -> Target:
    statuses = pod.status.ephemeral_container_statuses
    containers = {status.name: container_state(status) for status in statuses if status.name in injected}
    return Target(pod, injected, containers, pod_state(containers, names))


def parallelism_of(job: EphemeralJob) -> int:
    """Return in how many pods containers of the job may be at work."""
    return 1 if job.spec.parallelism is None else job.spec.parallelism
