"""Creates, deletes and updates the children of a UnitedDeployment (uniteddeployment.md §9.3 to §9.7)."""

import hashlib
from collections.abc import Container, Mapping, Sequence
from itertools import count

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.uniteddeployment.types import REVISION_LABEL, SUBSET_LABEL, Subset, UnitedDeployment
from flotilla_common.api.resources import POD
from flotilla_common.api.workload import Workload
from flotilla_common.control.plan import Chain, Delete, Event, Intent, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import create_of, delete_of, patch_of
from flotilla_common.workload.pod_creation import suffix
from flotilla_topology.uniteddeployment.children import (
    STATEFUL_SETS,
    Child,
    ChildKind,
    Family,
    is_on,
    ordinal,
    subset_of,
)
from flotilla_topology.uniteddeployment.desired import (
    ChildSettings,
    DesiredChild,
    changes,
    desired,
    lacks,
    new_child,
    same_patch,
)
from flotilla_topology.uniteddeployment.schedulability import Schedulability

PROVISION, UPDATE = "provision", "update"
"""The phases of writes."""

_LONGEST = 253 - 5
_LONGEST_PREFIX = 58
"""The number of characters that the apiserver keeps of a generated name's prefix."""


class Subsets(msgspec.Struct, frozen=True, kw_only=True):
    """The desired state of all subsets."""

    owner: UnitedDeployment
    family: Family
    revision: str  # name of the newest revision
    replicas: Mapping[str, int]
    partitions: Mapping[str, int]
    going: Sequence[tuple[ChildKind, Workload]]  # workloads outside the topology to be deleted
    schedulability: Mapping[str, Schedulability]

    def wanted(self, subset: Subset) -> ChildSettings:
        """Return the settings of the subset's child."""
        child, checked = self.family.of(subset.name), self.schedulability.get(subset.name)
        unavailable = None
        if child is not None and checked is not None and checked.unschedulable and self.owner.spec.reserves:
            missing = child.workload.replicas - child.workload.status.ready_replicas
            unavailable = max(missing, 0) + checked.overdue_updates
        return ChildSettings(
            kind=self.family.kind,
            subset=subset,
            revision=self.revision,
            replicas=self.replicas[subset.name],
            partition=self.partitions[subset.name],
            max_unavailable=unavailable,
        )


def plan_provision(subsets: Subsets, taken: Container[str], builder: PlanBuilder) -> None:
    """Plan the creates and deletes of children."""
    builder.stage(_deletes(subsets), stop_on_failure=False)
    builder.stage(_creates(subsets, taken, builder), slow_start=1)


def _creates(subsets: Subsets, taken: Container[str], builder: PlanBuilder) -> list[Chain]:
    missing = [subset for subset in subsets.owner.spec.topology.subsets if subsets.family.of(subset.name) is None]
    bodies: list[Json] = []
    for subset in sorted(missing, key=lambda subset: subset.name):
        wanted = subsets.wanted(subset)
        child = _readable(subsets, wanted, builder)
        if child is not None:
            name = _name(subsets.owner, subset.name, taken)
            bodies.append(new_child(subsets.owner, wanted, child, name))
    kind = subsets.family.kind
    created = Event(reason="SuccessfulUpdateSubset", message=f"Create {len(bodies)} Subset ({kind.name})")
    return [
        (
            create_of(
                kind.resource,
                body,
                Intent.CREATE,
                f"subset {body['metadata']['labels'][SUBSET_LABEL]}",
                phase=PROVISION,
                revision=subsets.revision,
                on_success=created if position == len(bodies) else None,
                on_failure=_provision_failed(),
            ),
        )
        for position, body in enumerate(bodies, start=1)
    ]


def _provision_failed() -> Event:
    return Event(reason="FailedUpdateSubset", message="fail to manage Subset provision: ", warning=True)


def _deletes(subsets: Subsets) -> list[Chain]:
    """Return the deletes of duplicates, and of workloads outside the topology that are no longer needed."""
    family, going = subsets.family, subsets.going
    deleted = Event(reason="SuccessfulUpdateSubset", message=f"Delete {len(going)} Subset ({family.kind.name})")
    chains: list[Chain] = [(_delete(family.kind, workload, None),) for workload in family.duplicates]
    return chains + [
        (_delete(kind, workload, deleted if position == len(going) else None),)
        for position, (kind, workload) in enumerate(going, start=1)
    ]


def _delete(kind: ChildKind, workload: Workload, event: Event | None) -> Delete:
    return delete_of(
        kind.resource,
        workload.metadata,
        Intent.DELETE,
        f"subset {subset_of(workload)}",
        phase=PROVISION,
        on_success=event,
        on_failure=_provision_failed(),
    )


def _name(owner: UnitedDeployment, subset: str, taken: Container[str]) -> str:
    """Return the name `<owner>-<subset>-<five characters>` of a new child (§9.4).

    It is the same for one version of the owner, so that a repeated create gets AlreadyExists from its own object.
    """
    meta = owner.metadata
    prefix = f"{meta.name}-{subset}-"
    if len(prefix) > _LONGEST:
        prefix = f"{meta.name}-"
    seed = hashlib.sha256("\n".join((meta.uid, meta.resource_version, subset)).encode()).digest()
    names = (prefix[:_LONGEST_PREFIX] + suffix(seed, attempt) for attempt in count())
    return next(name for name in names if name not in taken)


def plan_update(subsets: Subsets, builder: PlanBuilder) -> None:
    """Plan the updates of existing children, all subsets side by side (§9.6)."""
    chains: list[Chain] = []
    for subset in subsets.owner.spec.topology.subsets:
        child = subsets.family.of(subset.name)
        if child is not None and child.metadata.deletion_timestamp is None:
            chains.append(_update(subsets, child, subsets.wanted(subset), builder))
    builder.stage(chains, slow_start=1)


def _update(subsets: Subsets, child: Child, wanted: ChildSettings, builder: PlanBuilder) -> Chain:
    cause = _cause(child, wanted)
    if not cause:
        return ()
    target = _readable(subsets, wanted, builder)
    if target is None:
        return ()
    if cause == _ROLLING and not lacks(child.workload, target):
        return _stuck(child, wanted)
    failed = f"Error updating PodSet ({child.kind.name}) {child.metadata.name} when updating: "
    patch = patch_of(
        child.kind.resource,
        child.metadata,
        Intent.UPDATE,
        f"subset {child.name}: {cause}",
        body=changes(subsets.owner, child.workload, target),
        on_version=wanted.replicas < child.workload.replicas,  # the pods that can be spared may have changed since
        phase=UPDATE,
        revision=wanted.revision,
        on_failure=tuple(Event("FailedUpdateSubset", message, warning=True) for message in (failed, "")),
    )
    return (patch, *_stuck(child, wanted))


_ROLLING = "pods are left on old revisions"


def _cause(child: Child, wanted: ChildSettings) -> str:
    """Return the first cause for which the child must be written; empty if it is as desired."""
    workload = child.workload
    if workload.metadata.labels.get(REVISION_LABEL) != wanted.revision:
        return f"revision {wanted.revision}"
    if workload.replicas != wanted.replicas:
        return f"{workload.replicas} to {wanted.replicas} replicas"
    if child.kind.partitioned and child.partition != wanted.partition and not child.on_delete:
        return f"partition {child.partition} to {wanted.partition}"
    if not same_patch(child.patch, wanted.patch_text):
        return "patch"
    return _ROLLING if child.rolling else ""


def _stuck(child: Child, wanted: ChildSettings) -> Chain:
    """Delete old pods of a built-in StatefulSet that are not ready (§9.7).

    Its controller would wait for them forever.
    """
    if child.kind is not STATEFUL_SETS or child.on_delete:
        return ()
    return tuple(
        delete_of(
            POD, pod.metadata, Intent.RECREATE, "old, not ready, and blocking the rollout", revision=wanted.revision
        )
        for pod in child.pods
        if ordinal(pod) >= wanted.partition
        and not is_on(pod, wanted.revision)
        and not pod.ready
        and pod.metadata.deletion_timestamp is None
    )


def _readable(subsets: Subsets, wanted: ChildSettings, builder: PlanBuilder) -> DesiredChild | None:
    """Return the desired child; None, with a reason, if it cannot be computed."""
    try:
        return desired(subsets.owner, wanted)
    except ValueError as error:
        text = f"subset {wanted.subset.name} is not changed: {error}"
        builder.reason(State.STUCK, "InvalidSubset", text)
        builder.errors.append((UPDATE, text))
        message = f"Error updating PodSet ({wanted.kind.name}) {wanted.subset.name} when updating: {error}"
        builder.events.append(Event(reason="FailedUpdateSubset", message=message, warning=True))
        return None
