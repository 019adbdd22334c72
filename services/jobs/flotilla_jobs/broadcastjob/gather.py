"""From mirror tables to snapshots: a job, its pods and the nodes."""

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, BroadcastJob
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.watches import Watch, owned
from flotilla_common.control.wiring import Wiring
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot, Options


def _any_node(job: Json, node: Json) -> bool:
    return True


JOBS = Watch(BROADCAST_JOB, BroadcastJob, writes=("delete",), subresources=("status",))
PODS = Watch(POD, Pod, owner=BROADCAST_JOB, writes=("create", "delete"), subresources=("status",))
NODES = Watch(NODE, Node, concerns=_any_node)


class Gatherer:
    """Builds the snapshot of one job."""

    def __init__(self, wiring: Wiring, options: Options) -> None:
        self._jobs = wiring.table(JOBS)
        self._pods = wiring.table(PODS)
        self._nodes = wiring.table(NODES)
        self._gates = wiring.gates
        self._options = options

    def gather(self, key: Key, memory: Memory) -> BroadcastJobSnapshot | None:
        """The job and its surroundings; None when it does not exist."""
        job = self._jobs.get(*key)
        if job is None:
            return None
        return BroadcastJobSnapshot(
            job=job,
            nodes=list(self._nodes),
            pods=list(owned(self._pods, BROADCAST_JOB, job.metadata.uid)),
            taken_names=self._pods.names(key[0]),
            gates=self._gates,
            options=self._options,
            failures=memory.failures,
        )
