"""The input of planning one CloneSet, gathered beforehand and frozen.

A snapshot can be taken from the mirrors, from a support bundle, or built by hand in a test; the planner reads nothing
else.
"""

from collections.abc import Collection, Container, Mapping

import msgspec

from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import ObjectRef
from flotilla_common.gates import Gates
from flotilla_common.workload import gathering


class Options(gathering.Options, frozen=True, kw_only=True):
    """Settings of the service that change decisions."""

    exclude_preparing_delete: bool = False  # --cloneset-scaling-exclude-preparing-delete: for all CloneSets


class CloneSetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One CloneSet and its surroundings at one moment."""

    cloneset: CloneSet
    pods: Collection[Pod] = ()  # pods of the namespace with an owner reference to the CloneSet, in any state
    claims: Collection[PersistentVolumeClaim] = ()  # likewise
    taken_names: Container[str] = ()  # names of all pods of the namespace, with any owner
    revisions: Collection[ControllerRevision] = ()  # its own, and matching ones without an owner
    node_labels: Mapping[str, Mapping[str, str]] = {}  # by node name; needed only for topology spread constraints
    pull_jobs: Collection[ImagePullJob] | None = None  # jobs that it controls; None: images are not pulled ahead
    budgets: Mapping[Key, PodUnavailableBudget] = {}  # budgets that its pods name, by namespace and name
    gates: Gates = Gates()
    options: Options = Options()
    failures: Mapping[str, str] = {}  # error text of the previous pass by phase: scale, update
    notes: Mapping[str, str] = {}  # notes of the previous pass: failures that the status still reports
    pending_ids: tuple[str, ...] = ()  # instance ids of creates with unknown outcome, used first

    @property
    def subject(self) -> ObjectRef:
        """The CloneSet, as events and the bus name it."""
        return ObjectRef.of(CLONE_SET, self.cloneset.metadata)
