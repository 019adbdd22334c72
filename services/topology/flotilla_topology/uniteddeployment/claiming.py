"""Sorts workloads into the children of a UnitedDeployment, duplicates and leftovers.

See uniteddeployment.md §9.1 to §9.3.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from flotilla_common.api.meta import controller_of
from flotilla_common.api.moments import EARLIEST
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import Workload
from flotilla_topology.uniteddeployment.children import KINDS, Child, ChildKind, subset_of
from flotilla_topology.uniteddeployment.snapshot import UnitedDeploymentSnapshot


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
    duplicates = [one for one in workloads if first.setdefault(subset_of(one), one) is not one]
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
