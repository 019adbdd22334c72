"""Everything that planning one StatefulSet needs to know, gathered before and frozen (DESIGN: plans are values)."""

from collections.abc import Collection, Container, Mapping

import msgspec

from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod, StorageClass
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.control.controller import Key
from flotilla_common.control.subject import Subject
from flotilla_common.gates import Gates
from flotilla_common.workload.gathering import Options


class StatefulSetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One StatefulSet and its surroundings at one moment."""

    statefulset: StatefulSet
    pods: Collection[Pod] = ()  # those of the namespace with an owner reference to it, in any state
    orphans: Collection[Pod] = ()  # pods that nobody controls, with a name like those of its pods
    taken_names: Container[str] = ()  # names of all pods of the namespace, whoever they belong to
    claims: Mapping[str, PersistentVolumeClaim] = {}  # by name: those whose names its pods' claims may have
    storage_classes: Collection[StorageClass] = ()  # needed only for volumes that are to grow
    revisions: Collection[ControllerRevision] = ()  # of its namespace: its own, and nobody's
    pull_jobs: Collection[ImagePullJob] | None = None  # those that it controls; None: images are not pulled ahead
    budgets: Mapping[Key, PodUnavailableBudget] = {}  # those that its pods name, by namespace and name
    gates: Gates = Gates()
    options: Options = Options()
    failures: Mapping[str, str] = {}  # error text of the previous pass by phase: create, update, …

    @property
    def subject(self) -> Subject:
        """The StatefulSet, as events and the bus name it."""
        return Subject.of(STATEFUL_SET, self.statefulset.metadata)
