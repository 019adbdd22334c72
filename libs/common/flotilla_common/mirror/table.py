"""One resource's objects in memory, always moving forward (DESIGN §4).

A table takes objects from four ways in (the bus, a direct watch, the replies to our own writes, consistent LISTs) and
keeps the newest: for one uid an object with a lower resourceVersion than the held one is dropped, and a uid that was
deleted stays deleted. What is only inferred, because nobody speaks of an object any more, holds up to a version, and
until the apiserver itself says otherwise. So whoever reads a table sees at least everything that this process has
written.
"""

import math
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import structlog

from flotilla_common.api.meta import Object

T = TypeVar("T", bound=Object)
Indexer = Callable[[T], Iterable[Hashable]]
Listener = Callable[[T | None, T | None], None]
Filing = list[frozenset[Hashable]]
"""The keys under which each index files one object. They are kept, so that an indexer is asked once per version."""

ABSENT_MEMORY = 100_000
"""Uids of objects that are gone which are remembered so that a late message cannot revive one: more than can be on the
way."""


def version_number(text: str) -> int:
    """A resourceVersion as a number (comparable since KEP-5504); 0 when absent."""
    return int(text or 0)


def version_of(obj: Object) -> int:
    """The object's resourceVersion; 0 when absent."""
    return version_number(obj.metadata.resource_version)


class VersionsWentBack(Exception):
    """The apiserver's state is older than what this process has seen: etcd was restored from a backup. Everything that
    is remembered by version is wrong then, and the process has to begin anew."""


class Table(Generic[T]):
    """Objects by namespace and name, with named indexes. Listeners hear (old, new) of every change; None is absence.

    What an indexer or a listener cannot handle concerns nobody else: an object that cannot be indexed is not taken in,
    the other listeners hear of a change nevertheless, and `on_failure` is told.
    """

    def __init__(self, indexes: Mapping[str, Indexer[T]] | None = None) -> None:
        self._objects: dict[tuple[str, str], T] = {}
        self._by_uid: dict[str, T] = {}
        self._absent: dict[str, float] = {}  # by uid: up to which version; for ever if it was deleted
        self.newest = 0
        """The highest version that was heard of. What the apiserver is asked for from now on is no older."""
        self.inferred = -1
        """The highest version as of which an object was presumed absent. Who asks the apiserver for an object hears of
        a state that is no older."""
        self._indexers: dict[str, Indexer[T]] = {}
        self._indexes: dict[str, dict[Hashable, dict[str, T]]] = {}
        self._filed: dict[str, Filing] = {}  # by uid
        self._listeners: list[Listener[T]] = []
        self.on_failure: Callable[[T, Exception], None] = log_failure
        for name, indexer in (indexes or {}).items():
            self.add_index(name, indexer)

    def add_index(self, name: str, indexer: Indexer[T]) -> None:
        """Another index; no effect for one that is there. To be added before the first object."""
        if self._indexers.get(name) is indexer:
            return
        if name in self._indexers or self._objects:
            raise RuntimeError(f"index {name} is there already, or comes too late")
        self._indexers[name] = indexer
        self._indexes[name] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, namespace: str, name: str) -> T | None:
        """The object of that name, if it exists."""
        return self._objects.get((namespace, name))

    def by_uid(self, uid: str) -> T | None:
        """The object with that uid, if it exists."""
        return self._by_uid.get(uid)

    def was_deleted(self, uid: str) -> bool:
        """The object with that uid was here, and is surely gone (as long as that is remembered)."""
        return self._absent.get(uid) == math.inf

    def is_presumed_absent(self, uid: str) -> bool:
        """The object with that uid was here, and nobody has spoken of it when everything was told."""
        return self._absent.get(uid, math.inf) < math.inf

    def by_index(self, index: str, key: Hashable) -> Collection[T]:
        """The objects that the index files under `key`, in the order in which they were first seen."""
        return self._indexes[index].get(key, {}).values()

    def keys(self) -> list[tuple[str, str]]:
        """Namespace and name of all objects."""
        return list(self._objects)

    def names(self, namespace: str) -> "Names":
        """The names of all objects of one namespace, as they are at each question."""
        return Names(self, namespace)

    def listen(self, listener: Listener[T]) -> None:
        """Call `listener(old, new)` after every change."""
        self._listeners.append(listener)

    def apply(self, obj: T, as_of: int = -1) -> bool:
        """Take an object in, unless it is older than what is known. True when the table changed. `as_of`: the apiserver
        itself said that the object exists, no earlier than at this version; that weighs more than an inferred absence.
        """
        meta = obj.metadata
        self.newest = max(self.newest, version_of(obj))
        absent = self._absent.get(meta.uid, -1)
        if version_of(obj) <= absent and as_of < absent:
            return False
        key = (meta.namespace, meta.name)
        held = self._objects.get(key)
        if held is not None and version_of(held) >= version_of(obj):
            return False
        try:
            filing = self._keys(obj)
        except Exception as error:  # noqa: BLE001 - an object may hold what no indexer expected
            self.on_failure(obj, error)
            return False
        if held is not None and held.metadata.uid != meta.uid:
            self._forget(held)
            held_for_listeners: T | None = None
            self._notify(held, None)
        else:
            held_for_listeners = held
        self._absent.pop(meta.uid, None)
        self._objects[key] = obj
        self._by_uid[meta.uid] = obj
        self._file(obj, filing)
        self._notify(held_for_listeners, obj)
        return True

    def remove(self, namespace: str, name: str, uid: str = "", version: int = 0) -> bool:
        """The object is gone. A newer object of the same name (other uid, version above `version`) is left alone."""
        self.newest = max(self.newest, version)
        if uid:
            self._remember_absent(uid, math.inf)
        held = self._objects.get((namespace, name))
        if held is None or (uid and held.metadata.uid != uid) or (not uid and version and version_of(held) > version):
            return False
        self._forget(held)
        self._notify(held, None)
        return True

    def presume_absent(self, held: T, version: int) -> None:
        """Nobody speaks of the object as of `version`: it is gone, unless a newer version of it turns up, or the
        apiserver says that it is there."""
        self.inferred = max(self.inferred, version)
        self._forget(held, version)
        self._notify(held, None)

    def let_go(self, name: str) -> None:
        """Nobody looks at objects of this name any more: they are forgotten, which says nothing about whether they
        exist. Listeners do not hear of it."""
        for held in [obj for obj in self._objects.values() if obj.metadata.name == name]:
            self._forget(held, version=-1)

    def replace(
        self, objects: Iterable[T], version: int, scope: Callable[[T], bool] = lambda _: True, *, known: int = 0
    ) -> None:
        """A consistent LIST at `version`: apply all, and drop what lies in `scope`, is not newer, and is not listed.
        `known`: the newest version that was heard of when it was asked for. Raises VersionsWentBack when the LIST is
        older, or has older objects than are known of its own past."""
        if 0 < version < known:
            raise VersionsWentBack(
                f"resourceVersion {known} was heard of, and a LIST is at {version}: etcd was restored, beginning anew"
            )
        listed: set[str] = set()
        for obj in objects:
            listed.add(obj.metadata.uid)
            self._contradict(obj, version)
            self.apply(obj, as_of=version)
        gone = [
            held
            for held in self._objects.values()
            if held.metadata.uid not in listed and version_of(held) <= version and scope(held)
        ]
        for held in gone:
            self.remove(held.metadata.namespace, held.metadata.name, held.metadata.uid)

    def _contradict(self, obj: T, version: int) -> None:
        """As of `version` the object is as told; then no other version of it between the two can ever have been."""
        held = self._by_uid.get(obj.metadata.uid)
        if held is not None and version_of(obj) < version_of(held) <= version:
            name = f"{obj.metadata.namespace}/{obj.metadata.name}"
            raise VersionsWentBack(
                f"{name} was at resourceVersion {version_of(held)}, and a LIST at {version} has it at"
                f" {version_of(obj)}: etcd was restored, beginning anew"
            )

    def _forget(self, obj: T, version: float = math.inf) -> None:
        del self._objects[obj.metadata.key]
        self._by_uid.pop(obj.metadata.uid, None)
        self._file(obj, [frozenset() for _ in self._indexers])
        del self._filed[obj.metadata.uid]
        self._remember_absent(obj.metadata.uid, version)

    def _remember_absent(self, uid: str, version: float) -> None:
        self._absent[uid] = max(version, self._absent.get(uid, -1))
        if len(self._absent) > ABSENT_MEMORY:
            del self._absent[next(iter(self._absent))]

    def _keys(self, obj: T) -> Filing:
        return [frozenset(indexer(obj)) for indexer in self._indexers.values()]

    def _file(self, obj: T, filing: Filing) -> None:
        """Put the object into the indexes under these keys, and take it out of where it was filed before. Where it
        stays, it keeps its place."""
        uid = obj.metadata.uid
        before = self._filed.get(uid)
        self._filed[uid] = filing
        for position, index in enumerate(self._indexes.values()):
            keys = filing[position]
            for key in keys:
                index.setdefault(key, {})[uid] = obj
            for key in before[position] - keys if before else ():
                bucket = index[key]
                del bucket[uid]
                if not bucket:
                    del index[key]

    def _notify(self, old: T | None, new: T | None) -> None:
        for listener in self._listeners:
            try:
                listener(old, new)
            except Exception as error:  # noqa: BLE001 - the others have to hear of it
                if (obj := new or old) is not None:
                    self.on_failure(obj, error)


def log_failure(obj: Object, error: Exception) -> None:
    """Say that an object could not be handled, with the place in the code."""
    name = f"{obj.metadata.namespace}/{obj.metadata.name}"
    structlog.get_logger().error("an object cannot be handled", object=name, exc_info=error)


class Names(Container[str]):
    """The names of the objects of one namespace."""

    def __init__(self, table: Table[Any], namespace: str) -> None:
        self._table = table
        self._namespace = namespace

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._table.get(self._namespace, name) is not None
