"""The pod readiness controller (install.md §11).

An index keeps the pods that need their first condition, so all others cost nothing.
"""

from collections.abc import Iterable

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of, group_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch
from flotilla_common.control.wiring import Wiring
from flotilla_sidecar.podreadiness.plan import PodSnapshot, plan, waits_for_condition

PODS = Watch(POD, Pod, subresources=("status",))

WAITING = "waiting"
"""Index: pods that wait for their condition, all under this one key."""


class Gatherer:
    """Finds the pods that wait."""

    def __init__(self, wiring: Wiring, merging: Iterable[Resource]) -> None:
        """Pods of `merging` kinds are left to their controllers, where those are served."""
        self._left_out = {(kind.group, kind.kind) for kind in merging if wiring.settings.serves(kind.kind)}
        self._pods = wiring.table(PODS)
        self._pods.add_index(WAITING, lambda pod: (WAITING,) if self.concerns(pod) else ())
        wiring.wake(PODS, lambda old, new: [new.metadata.key] if new is not None and self.concerns(new) else ())

    def concerns(self, pod: Pod) -> bool:
        """Whether the pod needs a condition from us."""
        if not waits_for_condition(pod):
            return False
        owner = controller_of(pod.metadata)
        return owner is None or (group_of(owner.api_version), owner.kind) not in self._left_out

    def keys(self) -> list[Key]:
        """The pods that wait now."""
        return [pod.metadata.key for pod in self._pods.by_index(WAITING, WAITING)]

    def gather(self, key: Key, memory: Memory) -> PodSnapshot | None:
        """The pod; None when it is gone or does not wait any more."""
        pod = self._pods.get(*key)
        return PodSnapshot(pod) if pod is not None and self.concerns(pod) else None


WORKERS = 3
"""As the reference: one patch per pod is all there is to do."""


def pod_readiness(*merging: Resource) -> ControllerSpec[PodSnapshot]:
    """The controller. Pods of `merging` kinds, where those are served, get their condition from their own
    controllers, which merge it into writes that they make anyway."""
    return ControllerSpec(
        name="pod-readiness-controller",
        primary=PODS,
        wakes_itself=False,
        workers=WORKERS,
        off=lambda settings, gates: "",
        build=lambda wiring, options: Gatherer(wiring, merging),
        keys=Gatherer.keys,
        plan=plan,
    )
