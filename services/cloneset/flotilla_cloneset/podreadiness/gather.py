"""Which pods need their first condition. An index keeps exactly those, so all the others cost nothing."""

from collections.abc import Collection, Iterable

from flotilla_cloneset.podreadiness.plan import PodSnapshot, waits_for_condition
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of, group_of
from flotilla_common.api.resources import Resource
from flotilla_common.control.controller import Key, Memory
from flotilla_common.mirror.table import Indexer, Table

WAITING = "waiting"
"""Index: pods that wait for their condition, all under this one key."""


def waiting_index(merging: Collection[Resource]) -> Indexer[Pod]:
    """The indexer. Pods of `merging` kinds are left to their controllers, which merge the condition into writes that
    they make anyway."""
    left_out = {(resource.group, resource.kind) for resource in merging}

    def index(pod: Pod) -> Iterable[str]:
        if not waits_for_condition(pod):
            return ()
        owner = controller_of(pod.metadata)
        merged = owner is not None and (group_of(owner.api_version), owner.kind) in left_out
        return () if merged else (WAITING,)

    return index


class Gatherer:
    """Finds pods in a table that has the index."""

    def __init__(self, pods: Table[Pod], index: Indexer[Pod]) -> None:
        self._pods = pods
        self._index = index

    def concerns(self, pod: Pod | None) -> bool:
        """Whether the pod needs a condition from us."""
        return pod is not None and WAITING in self._index(pod)

    def keys(self) -> list[Key]:
        """The pods that wait now."""
        return [(pod.metadata.namespace, pod.metadata.name) for pod in self._pods.by_index(WAITING, WAITING)]

    def gather(self, key: Key, memory: Memory) -> PodSnapshot | None:
        """The pod; None when it is gone or does not wait any more."""
        pod = self._pods.get(*key)
        return PodSnapshot(pod) if pod is not None and self.concerns(pod) else None
