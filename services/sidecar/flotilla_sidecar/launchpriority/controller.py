"""Declares the container launch priority controller: its watches, its writes, and the gatherer of its snapshots.

An index holds the pods that start their containers in order, so all others cost nothing.
"""

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import AccessRule, Trigger, Watch
from flotilla_sidecar.launchpriority.barriers import Barriers
from flotilla_sidecar.launchpriority.launch import is_launching, key_of
from flotilla_sidecar.launchpriority.plan import LaunchSnapshot, plan, unproven

LAUNCHING = "launching"
"""Index: pods that start their containers in order, all under this one key."""


PODS = Watch(POD, Pod, indexes={LAUNCHING: lambda pod: (LAUNCHING,) if is_launching(pod) else ()}, writes=("patch",))


class Gatherer:
    """Builds the snapshot of one pod."""

    def __init__(self, context: ControllerContext) -> None:
        self._pods = context.table(PODS)
        self._barriers = Barriers(context.get, context.clock, context.requeue)
        context.add_task(self._barriers.run)

    def keys(self) -> list[Key]:
        """Return the pods that are starting their containers in order."""
        return [pod.metadata.key for pod in self._pods.by_index(LAUNCHING, LAUNCHING)]

    def gather(self, key: Key, memory: Memory) -> LaunchSnapshot | None:
        """Return the pod, with its ConfigMap if needed; None when it is gone or no longer waits."""
        pod = self._pods.get(*key)
        if pod is None or not is_launching(pod):
            self._barriers.forget(key)
            return None
        rank = unproven(pod)
        return LaunchSnapshot(pod=pod, barrier=None if rank is None else self._barriers.of(pod, key_of(rank)))


def _concerned(old: Pod | None, new: Pod | None) -> list[Key]:
    """Return the key of a pod that waits, or waited before the change."""
    return list(dict.fromkeys(pod.metadata.key for pod in (old, new) if pod is not None and is_launching(pod)))


WORKERS = 4
"""The number of workers, as in the reference (install.md §4)."""

CONTROLLER = ControllerSpec(
    name="container-launch-priority-controller",
    primary=PODS,
    wakes_itself=False,
    access=(AccessRule(CONFIG_MAP, ("create", "get", "patch")),),
    workers=WORKERS,
    off=lambda settings, gates: "",
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [Trigger(PODS, _concerned)],
    keys=Gatherer.keys,
    plan=plan,
)
