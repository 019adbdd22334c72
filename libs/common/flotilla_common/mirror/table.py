"""One resource's objects in memory, always moving forward (architecture.md §4).

A table receives objects in four ways (the bus, a direct watch, responses to our own writes, consistent LISTs) and keeps
the newest: for one uid an object with a lower resourceVersion than the held one is dropped, and a uid that was deleted
stays deleted. An absence that is only inferred, because an object was not mentioned, holds up to a version, and until
the apiserver contradicts it. So readers of a table see at least everything that this process has written.
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
"""The keys under which each index files one object, kept so that an indexer is called once per version."""

ABSENT_MEMORY = 100_000
"""Number of deleted uids that are kept, so that a late message cannot revive one: more than can be in flight."""

MOST_KEY_SETS = 1 << 13
"""Number of sets of index keys that are remembered to be shared."""


def version_number(text: str) -> int:
    """Parse a resourceVersion to a number (comparable since KEP-5504); 0 when absent."""
    return int(text or 0)


def version_of(obj: Object) -> int:
    """Return the object's resourceVersion; 0 when absent."""
    return version_number(obj.metadata.resource_version)


class VersionsWentBack(Exception):
    """The apiserver's state is older than what this process has seen: etcd was restored from a backup.

    Everything that is cached by version is wrong then, and the process has to restart.
    """


class Table(Generic[T]):
    """Objects by namespace and name, with named indexes and listeners for changes (old, new); None means absence.

    A failing indexer or listener affects nothing else: an object that cannot be indexed is not added, other listeners
    still receive a change, and `on_failure` is called.
    """

    def __init__(self, indexes: Mapping[str, Indexer[T]] | None = None) -> None:
        self._objects: dict[tuple[str, str], T] = {}
        self._by_uid: dict[str, T] = {}
        self._absent: dict[str, float] = {}  # by uid: up to which version; infinite if it was deleted
        self.newest = 0
        """The highest version seen. Responses to later requests to the apiserver are no older."""
        self.inferred = -1
        """The highest version as of which an object was presumed absent. Reads after that return no older state."""
        self._indexers: dict[str, Indexer[T]] = {}
        self._indexes: dict[str, dict[Hashable, dict[str, T]]] = {}
        self._filed: dict[str, Filing] = {}  # by uid
        self._key_sets: dict[frozenset[Hashable], frozenset[Hashable]] = {}
        self._listeners: list[Listener[T]] = []
        self.on_failure: Callable[[T, Exception], None] = log_failure
        for name, indexer in (indexes or {}).items():
            self.add_index(name, indexer)

    def add_index(self, name: str, indexer: Indexer[T]) -> None:
        """Add an index, before the first object; no effect if it exists."""
        if self._indexers.get(name) is indexer:
            return
        if name in self._indexers or self._objects:
            raise RuntimeError(f"index {name} exists already, or comes after the first object")
        self._indexers[name] = indexer
        self._indexes[name] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, namespace: str, name: str) -> T | None:
        """Return the object of that name, or None."""
        return self._objects.get((namespace, name))

    def by_uid(self, uid: str) -> T | None:
        """Return the object with that uid, or None."""
        return self._by_uid.get(uid)

    def was_deleted(self, uid: str) -> bool:
        """Report whether the object with that uid was deleted, if recently enough."""
        return self._absent.get(uid) == math.inf

    def is_presumed_absent(self, uid: str) -> bool:
        """Report whether the object with that uid was in the table, and a complete state did not include it."""
        return self._absent.get(uid, math.inf) < math.inf

    def by_index(self, index: str, key: Hashable) -> Collection[T]:
        """Return the objects that the index files under `key`, in the order in which they were first seen."""
        return self._indexes[index].get(key, {}).values()

    def keys(self) -> list[tuple[str, str]]:
        """Return namespace and name of all objects."""
        return list(self._objects)

    def names(self, namespace: str) -> "Names":
        """Return a live view of the names in one namespace."""
        return Names(self, namespace)

    def listen(self, listener: Listener[T]) -> None:
        """Call `listener(old, new)` after every change."""
        self._listeners.append(listener)

    def apply(self, obj: T, as_of: int = -1) -> bool:
        """Add or update an object, unless it is older than what is known; return whether the table changed.

        `as_of` is set when the apiserver itself returned the object, at this version or later; that overrides an
        inferred absence.
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
        except Exception as error:  # noqa: BLE001 - the object may have content that no indexer expected
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
        """Remove the object, unless a newer one has its name (other uid, version above `version`)."""
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
        """Remove an object that a complete state at `version` does not include.

        It comes back with a newer version, or when the apiserver returns it.
        """
        self.inferred = max(self.inferred, version)
        self._forget(held, version)
        self._notify(held, None)

    def evict(self, obj: T, version: float = math.inf, *, notify: bool = False) -> None:
        """Drop an object that is no longer followed, unless a version above `version` is held; it may still exist."""
        held = self._by_uid.get(obj.metadata.uid)
        if held is not None and version_of(held) <= version:
            self._forget(held, version=-1)
            if notify:
                self._notify(held, None)

    def evict_named(self, name: str) -> None:
        """Drop all objects of a name that is no longer followed, without calling listeners: they may still exist."""
        for held in [obj for obj in self._objects.values() if obj.metadata.name == name]:
            self.evict(held)

    def replace(
        self, objects: Iterable[T], version: int, scope: Callable[[T], bool] = lambda _: True, *, known: int = 0
    ) -> None:
        """Apply a consistent LIST at `version` as `merge` does, and drop objects in `scope` that it lacks."""
        self.drop_unlisted(self.merge(objects, version, known=known), version, scope)

    def merge(self, objects: Iterable[T], version: int, *, known: int = 0) -> set[str]:
        """Apply a part of a consistent LIST at `version`, and return its uids.

        `known` is the newest version seen before the request. Raises VersionsWentBack when the LIST is older, or has an
        older version of an object than its own past had.
        """
        if 0 < version < known:
            raise VersionsWentBack(
                f"resourceVersion {known} was seen, and a LIST is at {version}: etcd was restored, restarting"
            )
        listed: set[str] = set()
        for obj in objects:
            listed.add(obj.metadata.uid)
            self._contradict(obj, version)
            self.apply(obj, as_of=version)
        return listed

    def drop_unlisted(self, listed: Container[str], version: int, scope: Callable[[T], bool]) -> None:
        """Drop objects in `scope` that a consistent LIST at `version` lacks (by uid), unless they are newer."""
        gone = [
            held
            for held in self._objects.values()
            if held.metadata.uid not in listed and version_of(held) <= version and scope(held)
        ]
        for held in gone:
            self.remove(held.metadata.namespace, held.metadata.name, held.metadata.uid)

    def _contradict(self, obj: T, version: int) -> None:
        """Raise if the LIST at `version` has an older version of the object than was seen up to that version."""
        held = self._by_uid.get(obj.metadata.uid)
        if held is not None and version_of(obj) < version_of(held) <= version:
            name = f"{obj.metadata.namespace}/{obj.metadata.name}"
            raise VersionsWentBack(
                f"{name} was at resourceVersion {version_of(held)}, and a LIST at {version} has it at"
                f" {version_of(obj)}: etcd was restored, restarting"
            )

    def _forget(self, obj: T, version: float = math.inf) -> None:
        del self._objects[obj.metadata.key]
        self._by_uid.pop(obj.metadata.uid, None)
        self._file(obj, [frozenset() for _ in self._indexers])
        del self._filed[obj.metadata.uid]
        self._remember_absent(obj.metadata.uid, version)

    def _remember_absent(self, uid: str, version: float) -> None:
        if version < 0:
            return
        self._absent[uid] = max(version, self._absent.get(uid, -1))
        if len(self._absent) > ABSENT_MEMORY:
            del self._absent[next(iter(self._absent))]

    def _keys(self, obj: T) -> Filing:
        return [self._shared(frozenset(indexer(obj))) for indexer in self._indexers.values()]

    def _shared(self, keys: frozenset[Hashable]) -> frozenset[Hashable]:
        """Return the keys as another object has them: those of one owner are alike, and a set takes 200 bytes."""
        if len(self._key_sets) > MOST_KEY_SETS:
            self._key_sets.clear()
        return self._key_sets.setdefault(keys, keys)

    def _file(self, obj: T, filing: Filing) -> None:
        """File the object in the indexes under these keys only; where it stays, it keeps its place."""
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
            except Exception as error:  # noqa: BLE001 - the other listeners still have to run
                if (obj := new or old) is not None:
                    self.on_failure(obj, error)


def log_failure(obj: Object, error: Exception) -> None:
    """Log that an object could not be handled, with a traceback."""
    name = f"{obj.metadata.namespace}/{obj.metadata.name}"
    structlog.get_logger().error("cannot handle an object", object=name, exc_info=error)


class Names(Container[str]):
    """The names of the objects of one namespace."""

    def __init__(self, table: Table[Any], namespace: str) -> None:
        self._table = table
        self._namespace = namespace

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._table.get(self._namespace, name) is not None
