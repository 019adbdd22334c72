"""What is remembered of pods that are gone, by node: for kinds with a pod per node.

It is remembered by the process alone, and may be lost at any time.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Object, controller_of
from flotilla_common.mirror.table import Table
from flotilla_common.workload.placement import node_of

OwnerT = TypeVar("OwnerT", bound=Object)
MemoryT = TypeVar("MemoryT")


class Departed(Generic[OwnerT, MemoryT]):
    """The memories of all owners of a kind, from the tables' changes."""

    def __init__(
        self, owners: Table[OwnerT], pods: Table[Pod], remember: Callable[[OwnerT, Pod, MemoryT | None], MemoryT]
    ) -> None:
        """`remember` makes a memory of an owner's pod that is gone, given that of the node's pod before it."""
        self._owners = owners
        self._remember = remember
        self._known: dict[str, dict[str, MemoryT]] = {}  # by the owner's uid, and by node
        owners.listen(self._forget)
        pods.listen(self._note)

    def of(self, uid: str) -> Mapping[str, MemoryT]:
        """By node: what is remembered of the last pod of the owner with that uid."""
        return self._known.get(uid, {})

    def _forget(self, old: OwnerT | None, new: OwnerT | None) -> None:
        if new is None and old is not None:
            self._known.pop(old.metadata.uid, None)

    def _note(self, old: Pod | None, new: Pod | None) -> None:
        if old is None or new is not None:
            return
        reference, node = controller_of(old.metadata), node_of(old)
        owner = None if reference is None else self._owners.by_uid(reference.uid)
        if owner is not None and owner.metadata.namespace == old.metadata.namespace and node:
            known = self._known.setdefault(owner.metadata.uid, {})
            known[node] = self._remember(owner, old, known.get(node))
