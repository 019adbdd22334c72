"""The input of planning one StatefulSet, gathered beforehand and frozen."""

from collections.abc import Collection, Container, Mapping

import msgspec

from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod, StorageClass
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import ObjectRef
from flotilla_common.gates import Gates
from flotilla_common.workload.gathering import Options


class StatefulSetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One StatefulSet and its surroundings at one moment."""

    statefulset: StatefulSet
    pods: Collection[Pod] = ()  # pods of the namespace with an owner reference to the set, in any state
    orphans: Collection[Pod] = ()  # pods without a controller whose names match the set's pods
    taken_names: Container[str] = ()  # names of all pods of the namespace, with any owner
    claims: Mapping[str, PersistentVolumeClaim] = {}  # by name: claims whose names match those of its pods' claims
    storage_classes: Collection[StorageClass] = ()  # needed only for volume expansion
    revisions: Collection[ControllerRevision] = ()  # its own, and those of the namespace without an owner
    pull_jobs: Collection[ImagePullJob] | None = None  # jobs that it controls; None: images are not pulled ahead
    budgets: Mapping[Key, PodUnavailableBudget] = {}  # budgets that its pods name, by namespace and name
    gates: Gates = Gates()
    options: Options = Options()
    failures: Mapping[str, str] = {}  # error text of the previous pass by phase: create, update, …

    @property
    def subject(self) -> ObjectRef:
        """The StatefulSet, as events and the bus name it."""
        return ObjectRef.of(STATEFUL_SET, self.statefulset.metadata)
