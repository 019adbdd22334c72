"""The input of planning one UnitedDeployment, gathered beforehand and frozen."""

from collections.abc import Collection, Container, Mapping, Sequence

import msgspec

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT, UnitedDeployment
from flotilla_common.api.workload import Workload
from flotilla_common.control.plan import ObjectRef


class UnitedDeploymentSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One UnitedDeployment and its surroundings at one moment."""

    owner: UnitedDeployment
    workloads: Mapping[str, Collection[Workload]] = {}
    """By name of the `ChildKind`: workloads of the namespace that it controls, and unowned ones with a subset label."""
    pods: Mapping[str, Sequence[Pod]] = {}  # by uid of the workload; for a Deployment, through its ReplicaSets
    taken_names: Container[str] = ()  # names of all workloads of the namespace of the template's kind
    revisions: Collection[ControllerRevision] = ()  # its own, and those of the namespace without an owner
    failures: Mapping[str, str] = {}  # error text of the previous pass by phase: provision, update

    @property
    def subject(self) -> ObjectRef:
        """The UnitedDeployment, as events and the bus name it."""
        return ObjectRef.of(UNITED_DEPLOYMENT, self.owner.metadata)
