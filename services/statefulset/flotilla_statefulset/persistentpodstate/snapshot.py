"""The input of planning one PersistentPodState: the object, its namesakes, and the target's pods with their nodes."""

from collections.abc import Collection, Mapping

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE, PersistentPodState
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.objectref import ObjectRef
from flotilla_statefulset.persistentpodstate.workloads import Workload


class ConfirmedRead(msgspec.Struct, frozen=True):
    """The apiserver's answer about a workload: its metadata, or None if it does not exist."""

    found: ObjectMeta | None


class StateSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One PersistentPodState and its surroundings, or the name of one that is requested."""

    namespace: str
    name: str
    state: PersistentPodState | None = None
    namesakes: Collection[Workload] = ()  # workloads of this name, of every watched kind
    rival: str = ""  # another PersistentPodState that targets a namesake
    target: Workload | None = None  # the workload that the spec targets
    unfollowed: str = ""  # why workloads of the target's kind are not watched
    confirmed_read: ConfirmedRead | None = None  # about the workload that may cause a deletion; None: not answered yet
    pods: Collection[Pod] = ()  # pods with an owner reference to the target, in any state
    nodes: Mapping[str, Node] = {}  # nodes of these pods, by name

    @property
    def subject(self) -> ObjectRef:
        """The PersistentPodState, as the bus names it, even before it exists."""
        if self.state is None:
            return ObjectRef(PERSISTENT_POD_STATE, self.namespace, self.name)
        return ObjectRef.of(PERSISTENT_POD_STATE, self.state.metadata)
