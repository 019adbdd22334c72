"""The input of planning one PersistentPodState: the object, its namesakes, and the target's pods with their nodes.

Workloads of all kinds whose pods have persistent state are read into one shape (persistentpodstate.md §4, §7).
"""

from collections.abc import Collection, Mapping

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE, PersistentPodState
from flotilla_common.api.kinds.statefulset.types import Ordinals as OrdinalsSpec
from flotilla_common.api.kinds.statefulset.types import StatefulSet
from flotilla_common.api.meta import Model, Object, ObjectMeta, TargetRef
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import ObjectRef
from flotilla_common.gates import Gates
from flotilla_statefulset.ordinals import Ordinals
from flotilla_statefulset.statefulset.numbers import targets


class BuiltInSpec(Model):
    replicas: int = 1
    ordinals: OrdinalsSpec | None = None


class BuiltInStatefulSet(Model):
    """The fields of an apps/v1 StatefulSet that are read."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BuiltInSpec = BuiltInSpec()


class NumberedSpec(Model):
    replicas: int = 0


class NumberedWorkload(Model):
    """A workload of a kind that administrators configured; its pods are numbered from 0."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NumberedSpec = NumberedSpec()


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a workload that planning needs."""

    resource: Resource
    metadata: ObjectMeta
    ordinals: Ordinals
    terminating: bool = False

    @property
    def reference(self) -> TargetRef:
        """The reference by which a PersistentPodState targets the workload."""
        resource = self.resource
        return TargetRef(api_version=resource.api_version, kind=resource.kind, name=self.metadata.name)

    @property
    def called(self) -> str:
        """The name of the workload in reasons."""
        return called(self.reference)


def called(reference: TargetRef) -> str:
    """Return the name of a workload in reasons: "StatefulSet web of apps"."""
    group, kind, name = reference.identity
    return f"{kind} {name} of {group or 'core'}"


def workload_of(resource: Resource, obj: Object, gates: Gates) -> Workload:
    """Convert the object into a Workload."""
    match obj:
        case StatefulSet():
            ordinals = targets(obj.spec, gates).ordinals
        case BuiltInStatefulSet():
            start = obj.spec.ordinals.start if obj.spec.ordinals is not None else 0
            ordinals = Ordinals.of(start, obj.spec.replicas, ())
        case NumberedWorkload():
            ordinals = Ordinals.of(0, max(obj.spec.replicas, 0), ())
        case _:
            raise TypeError(f"{type(obj).__name__} is no workload")
    # A workload of a custom kind counts as existing until it is gone (§7).
    terminating = obj.metadata.deletion_timestamp is not None and not isinstance(obj, NumberedWorkload)
    return Workload(resource=resource, metadata=obj.metadata, ordinals=ordinals, terminating=terminating)


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
