"""The EphemeralJob controller: what it watches and writes, and what it plans from."""

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings, typed
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB, EphemeralJob
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import POD
from flotilla_common.api.selectors import Selector
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import IN_NAMESPACE, Watch, namespace_of
from flotilla_common.control.wiring import Wiring
from flotilla_jobs.ephemeraljob.plan import plan
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot
from flotilla_jobs.ephemeraljob.triggers import ACTIVE, Triggers, active_in


def is_chosen(job: Json, pod: Json) -> bool:
    """The job's selector matches the pod."""
    if member(job, "metadata").get("namespace") != member(pod, "metadata").get("namespace"):
        return False
    try:
        query = Selector.compile(typed(member(job, "spec", "selector"), LabelSelector))
    except ValueError:  # also what msgspec raises
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
    concerns=is_chosen,
)


class Gatherer:
    """Builds the snapshot of one job."""

    def __init__(self, wiring: Wiring) -> None:
        self._jobs = wiring.table(JOBS)
        self._pods = wiring.table(PODS)
        wiring.wake(PODS, Triggers(self._jobs).of_pod)

    def gather(self, key: Key, memory: Memory) -> EphemeralJobSnapshot | None:
        """The job and its pods; None when it does not exist."""
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
    build=lambda wiring, options: Gatherer(wiring),
    plan=plan,
)
