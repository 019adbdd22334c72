"""Workloads whose pods are remembered, whatever their kind: what is read of them, and one shape for all
(persistentpodstate.md §4, §7)."""

import msgspec

from flotilla_common.api.kinds.statefulset.types import Ordinals as OrdinalsSpec
from flotilla_common.api.kinds.statefulset.types import StatefulSet
from flotilla_common.api.meta import Model, Object, ObjectMeta, TargetRef
from flotilla_common.api.resources import Resource
from flotilla_common.gates import Gates
from flotilla_statefulset.ordinals import Ordinals
from flotilla_statefulset.statefulset.numbers import targets


class BuiltInSpec(Model):
    replicas: int = 1
    ordinals: OrdinalsSpec | None = None


class BuiltInStatefulSet(Model):
    """A StatefulSet of apps/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BuiltInSpec = BuiltInSpec()


class NumberedSpec(Model):
    replicas: int = 0


class NumberedWorkload(Model):
    """A workload of a kind that administrators named: its pods are numbered from 0."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NumberedSpec = NumberedSpec()


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What planning needs to know of a workload."""

    resource: Resource
    metadata: ObjectMeta
    ordinals: Ordinals
    terminating: bool = False

    @property
    def reference(self) -> TargetRef:
        """As a PersistentPodState names it."""
        resource = self.resource
        return TargetRef(api_version=resource.api_version, kind=resource.kind, name=self.metadata.name)

    @property
    def called(self) -> str:
        """As reasons name it."""
        return called(self.reference)


def called(reference: TargetRef) -> str:
    """ "StatefulSet web of apps"."""
    group, kind, name = reference.identity
    return f"{kind} {name} of {group or 'core'}"


def workload_of(resource: Resource, obj: Object, gates: Gates) -> Workload:
    """The object in the one shape."""
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
    # One of another kind counts as there until it is gone (§7).
    terminating = obj.metadata.deletion_timestamp is not None and not isinstance(obj, NumberedWorkload)
    return Workload(resource=resource, metadata=obj.metadata, ordinals=ordinals, terminating=terminating)
