"""Which jobs a change of a pod concerns: those of its namespace that are not over, and that chose it before or do so
now. Most changes of pods are none of theirs, and cost one comparison."""

from collections.abc import Iterable
from contextlib import suppress

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.ephemeraljob.types import EphemeralJob
from flotilla_common.control.controller import Key
from flotilla_common.mirror.table import Table

ACTIVE = "active"
"""Index: jobs that are not over, by namespace."""


def active_in(job: EphemeralJob) -> Iterable[str]:
    """The namespace of a job that is neither over nor on its way out."""
    is_over = job.status.completion_time is not None or job.metadata.deletion_timestamp is not None
    return () if is_over else (job.metadata.namespace,)


class Triggers:
    """Finds the jobs in their table."""

    def __init__(self, jobs: Table[EphemeralJob]) -> None:
        self._jobs = jobs

    def of_pod(self, old: Pod | None, new: Pod | None) -> set[Key]:
        """The jobs to which the pod is something else now."""
        if old is not None and new is not None and _look(old) == _look(new):
            return set()
        pods = [pod for pod in (old, new) if pod is not None]
        found = self._jobs.by_index(ACTIVE, pods[0].metadata.namespace)
        return {(job.metadata.namespace, job.metadata.name) for job in found if any(chooses(job, pod) for pod in pods)}


def chooses(job: EphemeralJob, pod: Pod) -> bool:
    """The selector matches. One that cannot be read matches nothing: the plan says so."""
    with suppress(ValueError):
        return job.query.matches(pod.metadata.labels)
    return False


def _look(pod: Pod) -> tuple[object, ...]:
    """All that jobs look at in a pod."""
    return (
        pod.active,
        pod.status.phase,
        pod.metadata.labels,
        pod.spec.ephemeral_containers,
        pod.status.ephemeral_container_statuses,
    )
