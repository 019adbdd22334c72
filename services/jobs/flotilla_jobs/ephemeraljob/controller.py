"""The EphemeralJob controller: what it watches and writes, and how it builds snapshots."""

from collections.abc import Iterable
from contextlib import suppress

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings, typed
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB, EphemeralJob
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import POD
from flotilla_common.api.selectors import Selector
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import IN_NAMESPACE, Near, Pods, Trigger, Watch, namespace_of
from flotilla_common.mirror.table import Table
from flotilla_jobs.ephemeraljob.plan import plan
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot

ACTIVE = "active"
"""Index: jobs that are not completed, by namespace."""


def active_in(job: EphemeralJob) -> Iterable[str]:
    """Return the namespace of a job that is neither completed nor being deleted."""
    is_over = job.status.completion_time is not None or job.metadata.deletion_timestamp is not None
    return () if is_over else (job.metadata.namespace,)


class Triggers:
    """Finds the jobs that a change of a pod concerns.

    These are the uncompleted jobs of its namespace that selected it before or do so now. Most changes of pods concern
    none, and cost one comparison.
    """

    def __init__(self, jobs: Table[EphemeralJob]) -> None:
        self._jobs = jobs

    def of_pod(self, old: Pod | None, new: Pod | None) -> set[Key]:
        """Return the jobs that the change of the pod concerns."""
        if old is not None and new is not None and _relevant_fields(old) == _relevant_fields(new):
            return set()
        pods = [pod for pod in (old, new) if pod is not None]
        jobs = self._jobs.by_index(ACTIVE, pods[0].metadata.namespace)
        return {job.metadata.key for job in jobs if any(chooses(job, pod) for pod in pods)}


def chooses(job: EphemeralJob, pod: Pod) -> bool:
    """Report whether the selector matches. One that cannot be parsed matches nothing; the plan reports it."""
    with suppress(ValueError):
        return job.query.matches(pod.metadata.labels)
    return False


def _relevant_fields(pod: Pod) -> tuple[object, ...]:
    """Return the fields of a pod that jobs depend on."""
    return (
        pod.active,
        pod.status.phase,
        pod.metadata.labels,
        pod.spec.ephemeral_containers,
        pod.status.ephemeral_container_statuses,
    )


def is_chosen(job: Json, pod: Json) -> bool:
    """Report whether the job's selector matches the pod."""
    if member(job, "metadata").get("namespace") != member(pod, "metadata").get("namespace"):
        return False
    try:
        query = Selector.compile(typed(member(job, "spec", "selector"), LabelSelector))
    except ValueError:  # also the base of msgspec's errors
        return False
    return query.matches(strings(member(pod, "metadata", "labels")))


JOBS = Watch(
    EPHEMERAL_JOB,
    EphemeralJob,
    indexes={ACTIVE: active_in},
    writes=("delete", "patch"),
    subresources=("status",),
)
PODS = Watch(
    POD,
    Pod,
    indexes={IN_NAMESPACE: namespace_of},
    subresources=("ephemeralcontainers",),
    pods=Pods(near=(Near(JOBS),)),
    concerns=is_chosen,
)


class Gatherer:
    """Builds the snapshot of one job."""

    def __init__(self, context: ControllerContext) -> None:
        self._jobs = context.table(JOBS)
        self._pods = context.table(PODS)
        self.triggers = Triggers(self._jobs)

    def gather(self, key: Key, memory: Memory) -> EphemeralJobSnapshot | None:
        """Return the job and its pods, or None if the job does not exist."""
        job = self._jobs.get(*key)
        if job is None:
            return None
        try:
            matches = job.query.matches
        except ValueError as fault:
            return EphemeralJobSnapshot(job=job, problem=str(fault), failures=memory.failures)
        pods = [pod for pod in self._pods.by_index(IN_NAMESPACE, key[0]) if matches(pod.metadata.labels)]
        return EphemeralJobSnapshot(job=job, pods=pods, failures=memory.failures)


CONTROLLER = ControllerSpec(
    name="ephemeraljob-controller",
    primary=JOBS,
    watches=(PODS,),
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [Trigger(PODS, gatherer.triggers.of_pod)],
    plan=plan,
)
