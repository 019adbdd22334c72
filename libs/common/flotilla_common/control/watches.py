"""Declarations of the resources that a controller reads and writes, and the owners of its dependents."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.meta import Object, ObjectMeta, controller_of, group_of
from flotilla_common.api.resources import Resource
from flotilla_common.control.keystate import Key
from flotilla_common.mirror.table import Indexer, Table

T = TypeVar("T", bound=Object)

ORPHANS = "orphans"
"""Index: objects without a controller, by namespace."""

IN_NAMESPACE = "namespace"
"""Index: objects by namespace."""


class AccessRule(msgspec.Struct, frozen=True):
    """Verbs on a resource besides those of a `Watch`."""

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()  # names of the objects; empty: all
    namespace: str = ""  # the setting with the only namespace; empty: all


def _namespaces_of(obj: Object) -> Iterable[str]:
    return [obj.metadata.namespace]


class Near(NamedTuple):
    """Objects in whose namespaces pods are needed."""

    watch: "Watch[Any]"
    namespaces: Callable[[Any], Iterable[str]] = _namespaces_of
    """Returns the namespaces for an object; none if it needs no pods (any more)."""


class Pods(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that a controller needs; the parts add up. Others do not reach the service (docs/adr/0035)."""

    owners: tuple[Resource, ...] = ()
    """Pods of controllers of these kinds."""
    unserved: tuple[Resource, ...] = ()
    """Pods of these kinds while CUSTOM_RESOURCE_ENABLE leaves the kind out."""
    orphans: bool = False
    """Pods without a controller."""
    sidecars: bool = False
    """Pods with injected sidecars, with containers that start or end in order, or waiting for their readiness gate."""
    near: tuple[Near, ...] = ()
    """Pods in the namespaces of these objects, whose watches come first."""


class Watch(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """A resource that a controller reads from the mirror, and its writes to it."""

    resource: Resource
    type: type[T]
    owner: Resource | None = None
    """The kind that may own these objects: they are indexed by owner (`owned`) and wake it when they change."""
    indexes: Mapping[str, Indexer[T]] = {}
    writes: tuple[str, ...] = ()
    """Verbs: create, patch, delete."""
    subresources: tuple[str, ...] = ()
    """The subresources that are patched: status, resize."""
    conditional: bool = False
    """All writes have a version precondition, so a stale view does no harm."""
    fresh: bool = False
    """List it before the first plan for a gained shard, even if not `consistent`: absence counts as deletion."""
    gate: str = ""
    """The feature gate that enables the watch."""
    pods: Pods | None = None
    """The pods that it needs, if it watches pods; None: all."""
    optional: bool = False
    """Skip the watch if the cluster does not serve the kind when the service starts."""
    private: str = ""
    """The setting with the one namespace that is read: directly, never over the bus."""
    named: bool = False
    """Read only objects with names that the gatherer asks for (`ControllerContext.named`): never over the bus."""
    concerns: Callable[[Json, Json], bool] | None = None
    """Reports whether an object (second) matters to one of the kind (first), for recordings (`flotilla bundle`).

    None: the objects that it owns do.
    """

    @property
    def direct(self) -> bool:
        """Report whether it is read from the apiserver, never over the bus."""
        return self.named or bool(self.private)

    @property
    def consistent(self) -> bool:
        """Report whether it is listed before the first plan for a gained shard, and after a write of unknown outcome.

        Writers without preconditions need a complete view.
        """
        return bool(self.writes or self.subresources) and not self.conditional

    @property
    def all_indexes(self) -> dict[str, Indexer[T]]:
        """The indexes of its table, including the index by owners."""
        by_owner = {} if self.owner is None else {owner_index(self.owner): _owner_identities(self.owner)}
        return {**by_owner, **self.indexes}


class Trigger(NamedTuple, Generic[T]):
    """A rule that enqueues keys after a change of a watched object."""

    watch: Watch[T]
    keys: Callable[[T | None, T | None], Iterable[Key]]
    """Given the object before and after the change; None where it did not or does not exist."""


def owner_index(kind: Resource) -> str:
    """Return the name of the index of objects by their owners of that kind, controllers or not."""
    return f"owner:{kind.id}"


def owned(table: Table[T], kind: Resource, owner: ObjectMeta) -> Collection[T]:
    """Return the objects that refer to the owner of that kind, which the table's `Watch` has to name.

    A reference to a namespaced owner means the dependent's own namespace, as for the garbage collector: a copy that was
    restored in another namespace with its references has no owner.
    """
    return table.by_index(owner_index(kind), (owner.namespace, owner.uid))


def controlled(table: Table[T], kind: Resource, owner: ObjectMeta) -> list[T]:
    """Return the owner's objects that it controls and that are not being deleted."""
    return [
        obj
        for obj in owned(table, kind, owner)
        if (controller := controller_of(obj.metadata)) is not None
        and controller.uid == owner.uid
        and obj.metadata.deletion_timestamp is None
    ]


def orphan_namespace(obj: Object) -> Iterable[str]:
    """Index an object without a controller by its namespace (`ORPHANS`)."""
    return [] if controller_of(obj.metadata) else [obj.metadata.namespace]


def namespace_of(obj: Object) -> Iterable[str]:
    """Index an object by its namespace (`IN_NAMESPACE`)."""
    return [obj.metadata.namespace]


def owner_keys(kind: Resource, old: Object | None, new: Object | None) -> set[Key]:
    """Return the owners of that kind, before and after, that a change of a dependent concerns.

    They are in its namespace, or cluster-scoped.
    """
    if old is not None and new is not None and old.metadata.owner_references == new.metadata.owner_references:
        old = None  # they are the same, as nearly always
    return {(namespace, name) for obj in (old, new) if obj is not None for namespace, name, _ in _owners(obj, kind)}


@cache
def _owner_identities(kind: Resource) -> Indexer[Object]:
    """Return the indexer of a kind; it is cached, so that the controllers of a service share an index."""
    return lambda obj: [(namespace, uid) for namespace, _, uid in _owners(obj, kind)]


def _owners(obj: Object, kind: Resource) -> Iterable[tuple[str, str, str]]:
    """Return (namespace, name, uid) of the object's owners of that kind, in any API version."""
    namespace = obj.metadata.namespace if kind.namespaced else ""
    return [
        (namespace, reference.name, reference.uid)
        for reference in obj.metadata.owner_references
        if reference.kind == kind.kind and group_of(reference.api_version) == kind.group
    ]
