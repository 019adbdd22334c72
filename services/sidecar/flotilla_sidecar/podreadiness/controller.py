"""Declares the pod readiness controller (install.md §11).

An index holds the pods that need their first condition, so all others cost nothing.
"""

from collections.abc import Iterable

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.meta import controller_of, group_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Pods, Trigger, Watch
from flotilla_sidecar.podreadiness.plan import PodSnapshot, plan, waits_for_condition

MERGING = (BROADCAST_JOB, CLONE_SET, DAEMON_SET, STATEFUL_SET)
"""Kinds whose controllers merge the first condition of their pods into their own writes."""

PODS = Watch(POD, Pod, subresources=("status",), pods=Pods(sidecars=True, unserved=MERGING))

WAITING = "waiting"
"""Index: pods that wait for their condition, all under this one key."""


class Gatherer:
    """Finds the pods that wait for their condition."""

    def __init__(self, context: ControllerContext, merging: Iterable[Resource]) -> None:
        """Leave pods of `merging` kinds to their controllers, if those are served."""
        self._left_out = {(kind.group, kind.kind) for kind in merging if context.settings.serves(kind.kind)}
        self._pods = context.table(PODS)
        self._pods.add_index(WAITING, lambda pod: (WAITING,) if self.concerns(pod) else ())

    def concerns(self, pod: Pod) -> bool:
        """Report whether the pod needs a condition from this controller."""
        if not waits_for_condition(pod):
            return False
        owner = controller_of(pod.metadata)
        return owner is None or (group_of(owner.api_version), owner.kind) not in self._left_out

    def of_pod(self, old: Pod | None, new: Pod | None) -> list[Key]:
        """Return the pod, if it waits."""
        return [new.metadata.key] if new is not None and self.concerns(new) else []

    def keys(self) -> list[Key]:
        """Return the pods that wait now."""
        return [pod.metadata.key for pod in self._pods.by_index(WAITING, WAITING)]

    def gather(self, key: Key, memory: Memory) -> PodSnapshot | None:
        """Return the pod; None when it is gone or no longer waits."""
        pod = self._pods.get(*key)
        return PodSnapshot(pod) if pod is not None and self.concerns(pod) else None


WORKERS = 3
"""The number of workers, as in the reference: the work is one patch per pod."""


def pod_readiness(*merging: Resource) -> ControllerSpec[PodSnapshot, Gatherer]:
    """Return the controller.

    Pods of `merging` kinds that are served get their condition from their own controllers, which merge it into other
    writes.
    """
    return ControllerSpec(
        name="pod-readiness-controller",
        primary=PODS,
        wakes_itself=False,
        workers=WORKERS,
        off=lambda settings, gates: "",
        build=lambda context, options: Gatherer(context, merging),
        triggers=lambda gatherer: [Trigger(PODS, gatherer.of_pod)],
        keys=Gatherer.keys,
        plan=plan,
    )
