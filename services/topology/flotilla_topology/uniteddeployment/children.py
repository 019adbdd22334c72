"""Finds the workloads that belong to a UnitedDeployment: its children, of four kinds, duplicates and leftovers.

See uniteddeployment.md §9.1 to §9.3.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import member
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import PATCH_ANNOTATION, REVISION_LABEL, SUBSET_LABEL, Template
from flotilla_common.api.meta import EARLIEST, ObjectMeta, controller_of, struct_cached_property
from flotilla_common.api.numbers import lenient_value
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import Workload
from flotilla_topology.uniteddeployment.snapshot import UnitedDeploymentSnapshot


class ChildKind(msgspec.Struct, frozen=True):
    """A kind of workload that a subset can have."""

    resource: Resource
    name: str  # in events
    template: str  # the member of `spec.template`
    partitioned: bool = True  # a partition can hold its update


STATEFUL_SETS = ChildKind(BUILT_IN_STATEFUL_SET, "StatefulSet", "statefulSetTemplate")
ADVANCED_STATEFUL_SETS = ChildKind(STATEFUL_SET, "AdvancedStatefulSet", "advancedStatefulSetTemplate")
CLONE_SETS = ChildKind(CLONE_SET, "CloneSet", "cloneSetTemplate")
DEPLOYMENTS = ChildKind(DEPLOYMENT, "Deployment", "deploymentTemplate", partitioned=False)
KINDS = (STATEFUL_SETS, ADVANCED_STATEFUL_SETS, CLONE_SETS, DEPLOYMENTS)


def kind_of(template: Template) -> ChildKind | None:
    """Return the kind whose template is set; None unless there is exactly one."""
    kinds = [kind for kind in KINDS if kind.template in template]
    return kinds[0] if len(kinds) == 1 else None


class Child(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A child of the template's kind, with its pods, as seen from one revision."""

    kind: ChildKind
    workload: Workload
    pods: Sequence[Pod] = ()
    revision: str  # name of the UnitedDeployment's newest revision

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata of the workload."""
        return self.workload.metadata

    @property
    def name(self) -> str:
        """The name of the subset."""
        return subset_of(self.workload)

    @property
    def patch(self) -> str:
        """The text of the patch with which it was created."""
        return self.metadata.annotations.get(PATCH_ANNOTATION, "")

    @struct_cached_property
    def partition(self) -> int:
        """Return how many pods stay on old revisions; under OnDelete, how many are on one."""
        if not self.kind.partitioned:
            return 0
        if self.on_delete:
            own = self.metadata.labels.get(REVISION_LABEL)
            return sum(pod.metadata.labels.get(REVISION_LABEL) != own for pod in self.pods)
        partition = member(self.workload.document, "updateStrategy", "rollingUpdate").get("partition")
        try:
            return lenient_value(partition, self.workload.replicas, round_up=True) if partition is not None else 0
        except (ValueError, TypeError, AttributeError):
            return -1  # equal to no partition, so it is replaced

    @struct_cached_property
    def updated(self) -> Sequence[Pod]:
        """Return the active pods on the newest revision."""
        return [pod for pod in self.pods if pod.active and is_on(pod, self.revision)]

    @property
    def on_delete(self) -> bool:
        """Report whether pods are updated only when they are deleted from outside."""
        strategy = member(self.workload.document, "updateStrategy")
        return self.kind in (STATEFUL_SETS, ADVANCED_STATEFUL_SETS) and strategy.get("type") == "OnDelete"

    @property
    def updated_ready(self) -> int:
        """The number of ready pods on the newest revision."""
        return sum(pod.ready for pod in self.updated)

    @property
    def rolling(self) -> bool:
        """Report whether pods remain that are not on the newest revision."""
        return len(self.updated) < self.workload.status.replicas


def is_on(pod: Pod, revision: str) -> bool:
    """Report whether the pod was made from the revision of the UnitedDeployment."""
    return pod.metadata.labels.get(REVISION_LABEL) == revision


def subset_of(workload: Workload) -> str:
    """Return the subset that the workload's label names; empty for none."""
    return workload.metadata.labels.get(SUBSET_LABEL, "")


def ordinal(pod: Pod) -> int:
    """Return the number at the end of the pod's name, for stateful kinds."""
    digits = pod.metadata.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """The workloads of one kind, by the action that they need."""

    own: Sequence[Workload] = ()  # controlled, with the labels of children
    orphans: Sequence[Workload] = ()  # with the labels of children but no controller: to be adopted
    strays: Sequence[Workload] = ()  # controlled, but the selector no longer matches: to be released
    nameless: Sequence[Workload] = ()  # controlled, but without a subset label: left alone


def claim(snapshot: UnitedDeploymentSnapshot, kind: ChildKind, selector: Selector) -> Claimed:
    """Classify the workloads of one kind."""
    own: list[Workload] = []
    orphans: list[Workload] = []
    strays: list[Workload] = []
    nameless: list[Workload] = []
    for workload in snapshot.workloads.get(kind.name, ()):
        controller, matches = controller_of(workload.metadata), selector.matches(workload.metadata.labels)
        if controller is None:
            if matches and subset_of(workload) and workload.metadata.deletion_timestamp is None:
                orphans.append(workload)
        elif controller.uid == snapshot.owner.metadata.uid:
            (strays if not matches else own if subset_of(workload) else nameless).append(workload)
    return Claimed(own=own, orphans=orphans, strays=strays, nameless=nameless)


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """The children of the template's kind, and the workloads to be deleted."""

    kind: ChildKind
    children: Sequence[Child]  # one per subset, in the order of names
    duplicates: Sequence[Workload] = ()  # further workloads of the same subset
    surplus: Sequence[Child] = ()  # children of subsets outside the topology
    others: Sequence[tuple[ChildKind, Workload]] = ()  # of kinds that the template no longer uses

    @property
    def all(self) -> Sequence[Child]:
        """The children of the kind, with or without a subset in the topology."""
        return [*self.children, *self.surplus]

    def of(self, subset: str) -> Child | None:
        """Return the child of a subset."""
        return next((child for child in self.children if child.name == subset), None)


def family(snapshot: UnitedDeploymentSnapshot, kind: ChildKind, claims: dict[str, Claimed], revision: str) -> Family:
    """Return the children as they will be once orphans are adopted.

    Of two workloads with the same subset the older one stays, but rather one that is not terminating.
    """
    claimed = claims[kind.name]
    first: dict[str, Workload] = {}
    workloads = sorted([*claimed.own, *claimed.orphans], key=_age)
    duplicates = [workload for workload in workloads if first.setdefault(subset_of(workload), workload) is not workload]
    subsets = {subset.name for subset in snapshot.owner.spec.topology.subsets}
    children = [
        Child(kind=kind, workload=workload, pods=snapshot.pods.get(workload.metadata.uid, ()), revision=revision)
        for _, workload in sorted(first.items())
    ]
    return Family(
        kind=kind,
        children=[child for child in children if child.name in subsets],
        duplicates=_going(duplicates, claimed.own),
        surplus=[child for child in children if child.name not in subsets],
        others=[(other, workload) for other in KINDS if other is not kind for workload in claims[other.name].own],
    )


def _going(workloads: Iterable[Workload], own: Collection[Workload]) -> list[Workload]:
    """Return the owned workloads that are not terminating yet: nothing else is deleted."""
    uids = {workload.metadata.uid for workload in own}
    return [
        workload
        for workload in workloads
        if workload.metadata.uid in uids and workload.metadata.deletion_timestamp is None
    ]


def _age(workload: Workload) -> tuple[object, ...]:
    meta = workload.metadata
    return meta.deletion_timestamp is not None, meta.creation_timestamp or EARLIEST, meta.name
