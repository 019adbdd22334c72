"""Which pods a job is about now, in which order, and how far each of them is (ephemeraljob.md §5.2).

They are chosen anew in every pass: where a pod goes away, the next one in order moves up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from flotilla_common.api.core import ContainerStatus, EphemeralContainer, Pod
from flotilla_common.api.facts import Fact
from flotilla_common.api.kinds.ephemeraljob.types import (
    FAILED,
    JOB_UID_ENV,
    RUNNING,
    SUCCEEDED,
    UNKNOWN,
    WAITING,
    EphemeralJob,
)

CANNOT_RUN = "RunContainerError"
"""Why a container waits that could not be started: an ephemeral one is not tried again."""


def container_state(status: ContainerStatus) -> str:
    """The state of one container; Unknown while its kubelet has not said anything about it."""
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
    """The state of a pod from those of its containers, by name. `names`: all containers of the template."""
    found = set(containers.values())
    if FAILED in found:
        return FAILED
    if names and all(containers.get(name) == SUCCEEDED for name in names):
        return SUCCEEDED
    return next((state for state in (RUNNING, WAITING) if state in found), UNKNOWN)


class Target(msgspec.Struct, frozen=True):
    """A pod of the job."""

    pod: Pod
    injected: frozenset[str]  # names of the job's containers that it has
    containers: Mapping[str, str]  # their states by name, as far as the kubelet told of them
    state: str

    @property
    def at_work(self) -> bool:
        """It has containers of the job that have not ended: what parallelism limits. A pod counts from its injection
        on, when the kubelet has not said anything yet, and no longer once it has failed."""
        if not self.injected or self.state in (SUCCEEDED, FAILED):
            return False
        return self.state != UNKNOWN or any(self.containers.get(name) != SUCCEEDED for name in self.injected)


class Targets(msgspec.Struct, frozen=True, dict=True):
    """The pods of the job in their order, and those that cannot be among them."""

    chosen: Sequence[Target]
    conflicts: Sequence[Pod]  # a container of somebody else has one of the names: it is taken for ever

    @classmethod
    def of(cls, job: EphemeralJob, pods: Iterable[Pod]) -> "Targets":
        """Of these pods that match."""
        names, uid = job.spec.template.names, job.metadata.uid
        chosen: list[Target] = []
        conflicts: list[Pod] = []
        for pod in sorted((pod for pod in pods if pod.active), key=lambda pod: pod.metadata.seniority):
            held = [container for container in pod.spec.ephemeral_containers if container.name in names]
            if all(is_own(container, uid) for container in held):
                chosen.append(_target(pod, frozenset(container.name for container in held), names))
            else:
                conflicts.append(pod)
        limit = job.spec.replicas
        return cls(chosen if limit is None else chosen[: max(limit, 0)], conflicts)

    @Fact
    def open(self) -> Sequence[Target]:
        """Those without a container of the job."""
        return [target for target in self.chosen if not target.injected]

    @Fact
    def at_work(self) -> Sequence[Target]:
        """Those that parallelism counts."""
        return [target for target in self.chosen if target.at_work]

    def of_state(self, state: str) -> Sequence[Target]:
        """Those in this state."""
        return [target for target in self.chosen if target.state == state]


def is_own(container: EphemeralContainer, uid: str) -> bool:
    """The job with this uid has put the container into its pod."""
    return any(env.name == JOB_UID_ENV and env.value == uid for env in container.env)


def _target(pod: Pod, injected: frozenset[str], names: frozenset[str]) -> Target:
    statuses = pod.status.ephemeral_container_statuses
    containers = {status.name: container_state(status) for status in statuses if status.name in injected}
    return Target(pod, injected, containers, pod_state(containers, names))
