"""The BroadcastJob controller: what it watches and writes, and how it builds snapshots."""

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, NAME_LABEL, UID_LABEL, BroadcastJob
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Pods, Trigger, Watch, owned
from flotilla_common.settings import Settings
from flotilla_common.workload.pernode import Departed
from flotilla_jobs.broadcastjob.plan import plan
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot, Options
from flotilla_jobs.broadcastjob.status import has_ended

JOBS = Watch(BROADCAST_JOB, BroadcastJob, writes=("delete",), subresources=("status",))
PODS = Watch(
    POD,
    Pod,
    owner=BROADCAST_JOB,
    writes=("create", "delete"),
    subresources=("status",),
    pods=Pods(owners=(BROADCAST_JOB,)),
)
NODES = Watch(NODE, Node, concerns=lambda job, node: True)


class Gatherer:
    """Builds the snapshot of one job."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._jobs = context.table(JOBS)
        self._pods = context.table(PODS)
        self._nodes = context.table(NODES)
        self._former_names = Departed(self._jobs, self._pods, _name)
        self._gates = context.gates
        self._options = options

    def gather(self, key: Key, memory: Memory) -> BroadcastJobSnapshot | None:
        """Return the job and its surroundings, or None if it does not exist."""
        job = self._jobs.get(*key)
        if job is None:
            return None
        return BroadcastJobSnapshot(
            job=job,
            nodes=list(self._nodes),
            pods=[pod for pod in owned(self._pods, BROADCAST_JOB, job.metadata) if _belongs(pod, job)],
            taken_names=self._pods.names(key[0]),
            former_names=self._former_names.of(job.metadata.uid),
            gates=self._gates,
            options=self._options,
            failures=memory.failures,
            notes=memory.notes,
        )

    def of_node(self, old: Node | None, new: Node | None) -> list[Key]:
        """Return the jobs that have not ended, or none if the change (a heartbeat) does not affect scheduling."""
        if old is not None and new is not None and _suits(old) == _suits(new):
            return []
        return [job.metadata.key for job in self._jobs if not has_ended(job)]


def _belongs(pod: Pod, job: BroadcastJob) -> bool:
    """Report whether the job controls the pod, and both labels are there (broadcastjob.md §4.2 step 5)."""
    owner = controller_of(pod.metadata)
    controls = owner is not None and owner.uid == job.metadata.uid
    return controls and {NAME_LABEL, UID_LABEL} <= pod.metadata.labels.keys()


def _name(job: BroadcastJob, pod: Pod, before: str | None) -> str:
    """Return the name of a deleted pod, so that the next pod of its node gets another one."""
    return pod.metadata.name


def _suits(node: Node) -> tuple[object, ...]:
    """Return the fields of a node that decide whether it gets pods."""
    return node.metadata.labels, node.spec, node.status.allocatable


def options(settings: Settings, server_version: str) -> Options:
    """Return the settings that planning depends on."""
    return Options(system_namespace=settings.namespace, assign_by_scheduler=settings.assign_bcj_pods_by_scheduler)


CONTROLLER = ControllerSpec(
    name="broadcastjob-controller",
    primary=JOBS,
    watches=(PODS, NODES),
    options=spec.Options(Options, options),
    build=Gatherer,
    triggers=lambda gatherer: [Trigger(NODES, gatherer.of_node)],
    plan=plan,
)
