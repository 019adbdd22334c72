"""What a controller reads and writes, resource by resource, and how dependents lead to their owners."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Generic, TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.meta import Object, ObjectMeta, controller_of, group_of
from flotilla_common.api.resources import Resource
from flotilla_common.control.controller import Key
from flotilla_common.mirror.table import Indexer, Table

T = TypeVar("T", bound=Object)

ORPHANS = "orphans"
"""Index: objects without a controller, by namespace."""

IN_NAMESPACE = "namespace"
"""Index: objects by namespace."""


class Access(msgspec.Struct, frozen=True):
    """Verbs on a resource besides those that a `Watch` names."""

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()  # of the objects; empty: all
    namespace: str = ""  # the setting that names the only namespace; empty: everywhere


class Watch(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """A resource that a controller reads from the mirror, and what it writes of it."""

    resource: Resource
    type: type[T]
    owner: Resource | None = None
    """The kind that may own these objects: they are indexed by their owners (`owned`), and a change wakes those."""
    indexes: Mapping[str, Indexer[T]] = {}
    writes: tuple[str, ...] = ()
    """Verbs: create, patch, delete."""
    subresources: tuple[str, ...] = ()
    """Those that are patched: status, resize."""
    conditional: bool = False
    """Every write holds only for the version that was looked at, so a stale view does no harm."""
    fresh: bool = False
    """Listed before the first plan for a gained shard, though it is not written, or only with conditions: what is
    absent is taken for gone at once."""
    gate: str = ""
    """The feature gate without which it is not watched."""
    optional: bool = False
    """Not watched where the cluster does not serve the kind when the service starts."""
    private: str = ""
    """The setting that names the one namespace that is read: directly, never over the bus."""
    named: bool = False
    """Only objects are read whose names the gatherer asks for (`Wiring.named`): directly, never over the bus."""
    concerns: Callable[[Json, Json], bool] | None = None
    """For recordings (`flotilla bundle`): whether an object (second) matters to an object of the controller's kind
    (first). None: those do that it owns."""

    @property
    def direct(self) -> bool:
        """It is read from the apiserver, never over the bus."""
        return self.named or bool(self.private)

    @property
    def consistent(self) -> bool:
        """Listed before the first plan for a gained shard, and after a write of unknown outcome: who writes without
        conditions must know what there is."""
        return bool(self.writes or self.subresources) and not self.conditional

    @property
    def all_indexes(self) -> dict[str, Indexer[T]]:
        """The indexes of its table, that by owners included."""
        by_owner = {} if self.owner is None else {owner_index(self.owner): _owner_identities(self.owner)}
        return {**by_owner, **self.indexes}


def owner_index(kind: Resource) -> str:
    """The name of the index of objects by their owners of that kind, controllers or not."""
    return f"owner:{kind.id}"


def owned(table: Table[T], kind: Resource, owner: ObjectMeta) -> Collection[T]:
    """Return the objects that refer to the owner of that kind. The table's `Watch` names the kind.

    A reference to an owner with a namespace means one of the dependent's own namespace, as for the garbage collector:
    a copy that was restored in another namespace with its references belongs to nobody.
    """
    return table.by_index(owner_index(kind), (owner.namespace, owner.uid))


def controlled(table: Table[T], kind: Resource, owner: ObjectMeta) -> list[T]:
    """Return those of the owner's objects that it controls and that are not on their way out."""
    return [
        obj
        for obj in owned(table, kind, owner)
        if (controller := controller_of(obj.metadata)) is not None
        and controller.uid == owner.uid
        and obj.metadata.deletion_timestamp is None
    ]


def orphan_namespace(obj: Object) -> Iterable[str]:
    """For an index (`ORPHANS`): the namespace of an object that nobody controls."""
    return [] if controller_of(obj.metadata) else [obj.metadata.namespace]


def namespace_of(obj: Object) -> Iterable[str]:
    """For an index (`IN_NAMESPACE`): the namespace of an object."""
    return [obj.metadata.namespace]


def owner_keys(kind: Resource, old: Object | None, new: Object | None) -> set[Key]:
    """Return the owners of that kind that a change of a dependent concerns: those before and those after. They are in
    its namespace, or in none."""
    if old is not None and new is not None and old.metadata.owner_references == new.metadata.owner_references:
        old = None  # they are the same, as nearly always
    return {(namespace, name) for obj in (old, new) if obj is not None for namespace, name, _ in _owners(obj, kind)}


@cache
def _owner_identities(kind: Resource) -> Indexer[Object]:
    """One indexer per kind, so that the controllers of a service share an index."""
    return lambda obj: [(namespace, uid) for namespace, _, uid in _owners(obj, kind)]


def _owners(obj: Object, kind: Resource) -> Iterable[tuple[str, str, str]]:
    """Return (namespace, name, uid) of the object's owners of that kind, whatever version the references say."""
    namespace = obj.metadata.namespace if kind.namespaced else ""
    return [
        (namespace, reference.name, reference.uid)
        for reference in obj.metadata.owner_references
        if reference.kind == kind.kind and group_of(reference.api_version) == kind.group
    ]
