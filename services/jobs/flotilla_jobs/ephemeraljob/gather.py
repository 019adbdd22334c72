"""From mirror tables to snapshots: a job and the pods that its selector matches."""

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB, EphemeralJob
from flotilla_common.api.resources import POD
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.watches import Watch
from flotilla_common.control.wiring import Wiring
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot

JOBS = Watch(EPHEMERAL_JOB, EphemeralJob, writes=("delete", "patch"), subresources=("status",))
PODS = Watch(POD, Pod, subresources=("ephemeralcontainers",))


class Gatherer:
    """Builds the snapshot of one job."""

    def __init__(self, wiring: Wiring) -> None:
        self._jobs = wiring.table(JOBS)

    def gather(self, key: Key, memory: Memory) -> EphemeralJobSnapshot | None:
        """The job and its pods; None when it does not exist."""
        job = self._jobs.get(*key)
        return None if job is None else EphemeralJobSnapshot(job=job, failures=memory.failures)
