"""What planning one PersistentPodState looks at: the object, what its annotated namesakes ask for, and the pods of its
workload with their nodes."""

from collections.abc import Collection, Mapping

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE, PersistentPodState
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.subject import Subject
from flotilla_statefulset.persistentpodstate.workloads import Workload


class Said(msgspec.Struct, frozen=True):
    """What the apiserver itself said of a workload: what there is of it, or nothing."""

    found: ObjectMeta | None


class StateSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One PersistentPodState, or the name of one that is asked for."""

    namespace: str
    name: str
    state: PersistentPodState | None = None
    namesakes: Collection[Workload] = ()  # workloads of this name, of every kind that is followed
    rival: str = ""  # another PersistentPodState that is about a namesake
    target: Workload | None = None  # what the spec means
    unfollowed: str = ""  # why workloads of the target's kind are not known
    said: Said | None = None  # of the workload for whose sake something would be thrown away; None: not answered yet
    pods: Collection[Pod] = ()  # those with an owner reference to the target, in any state
    nodes: Mapping[str, Node] = {}  # those that these pods run on, by name

    @property
    def subject(self) -> Subject:
        """The PersistentPodState, as the bus names it, also before there is one."""
        if self.state is None:
            return Subject(PERSISTENT_POD_STATE, self.namespace, self.name)
        return Subject.of(PERSISTENT_POD_STATE, self.state.metadata)
