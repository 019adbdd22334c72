"""The store, as etcd is to the real apiserver: all objects, one revision counter, and an event for every change.

Documents are values: a stored one never changes, and a new version shares the unchanged parts. Each is encoded at most
once.
"""

import hashlib

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import WatchEvent
from tests.simulation.apiserver.event_log import Event, EventLog
from tests.simulation.history import History, Version

ObjectKey = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

RESTORER = "etcd"
"""The writer of changes in the history when a backup is restored."""

_encode = msgspec.json.Encoder().encode


class Stored:
    """One version of one object."""

    __slots__ = ("_raw", "document", "revision")

    def __init__(self, document: Json, revision: int) -> None:
        self.document = document
        self.revision = revision
        self._raw = b""

    @property
    def raw(self) -> bytes:
        """The document as JSON."""
        if not self._raw:
            self._raw = _encode(self.document)
        return self._raw


class Table:
    """The objects of one resource."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.objects: dict[ObjectKey, Stored] = {}
        self.log = EventLog()

    def in_order(self, namespace: str = "") -> list[tuple[ObjectKey, Stored]]:
        """All objects, or those of one namespace, by namespace and name."""
        found = [item for item in self.objects.items() if not namespace or item[0][0] == namespace]
        return sorted(found, key=lambda item: item[0])


class Backup(msgspec.Struct, frozen=True):
    """All objects at one revision, by resource."""

    revision: int
    objects: dict[str, dict[ObjectKey, Stored]]


class Store:
    """All tables."""

    def __init__(self, clock: Clock, history: History) -> None:
        self.revision = 1
        self._compacted = 0
        self._clock = clock
        self._history = history
        self._tables: dict[str, Table] = {}
        self._identities = 0

    def table(self, resource: Resource) -> Table:
        """Return the table of a resource, created on first use."""
        table = self._tables.get(resource.id)
        if table is None:
            table = self._tables[resource.id] = Table(resource)
            table.log.floor = self._compacted
        return table

    def fresh_uid(self) -> str:
        """Return a uid like the real ones, but deterministic: the nth is always the same."""
        self._identities += 1
        digest = hashlib.md5(b"uid-%d" % self._identities, usedforsecurity=False).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:]}"

    def fresh_suffix(self) -> str:
        """Return the random suffix of a generated name."""
        self._identities += 1
        digest = hashlib.md5(b"name-%d" % self._identities, usedforsecurity=False).digest()
        return "".join(_SUFFIX[byte % len(_SUFFIX)] for byte in digest[:5])

    def put(self, table: Table, place: ObjectKey, document: Json, writer: str) -> Stored:
        """Commit a new version of an object."""
        before = table.objects.get(place)
        stored = self._version(document)
        table.objects[place] = stored
        event = WatchEvent("MODIFIED" if before else "ADDED", msgspec.Raw(stored.raw))
        self._tell(table, place, writer, before, stored, event)
        return stored

    def remove(self, table: Table, place: ObjectKey, document: Json, writer: str) -> Stored:
        """Commit the end of an object; `document` is its last state. Returns it with the revision of its end."""
        before = table.objects.pop(place)
        last = self._version(document)
        self._tell(table, place, writer, before, None, WatchEvent("DELETED", msgspec.Raw(last.raw)))
        return last

    def drop(self, resource: Resource, writer: str) -> None:
        """Forget a resource with all its objects."""
        table = self.table(resource)
        for place, stored in table.in_order():
            self.remove(table, place, stored.document, writer)
        table.log.closed = True
        table.log.wake()
        del self._tables[resource.id]

    def compact(self, revision: int) -> None:
        """Forget all events up to the revision."""
        self._compacted = max(self._compacted, revision)
        for table in self._tables.values():
            table.log.compact(revision)

    def backup(self) -> Backup:
        """Everything as it is now."""
        return Backup(self.revision, {name: dict(table.objects) for name, table in self._tables.items()})

    def restore(self, backup: Backup) -> None:
        """Restore all objects and revisions; uids are not reused. All watches end, as at a restart."""
        tables = list(self._tables.values())
        lost = [table.objects for table in tables]
        self.revision = self._compacted = backup.revision
        for table in tables:
            table.objects = dict(backup.objects.get(table.resource.id, {}))
            table.log.closed = True
            table.log.wake()
            table.log = EventLog()
            table.log.floor = backup.revision
        for table, before in zip(tables, lost, strict=True):
            for place in sorted(before.keys() | table.objects.keys()):
                old, new = before.get(place), table.objects.get(place)
                if old is not None and new is not None and _uid(old) != _uid(new):
                    self._commit(table, place, RESTORER, old, None)
                    old = None
                if old is not new:
                    self._commit(table, place, RESTORER, old, new)

    def _version(self, document: Json) -> Stored:
        self.revision += 1
        metadata = document["metadata"] | {"resourceVersion": str(self.revision)}
        return Stored(document | {"metadata": metadata}, self.revision)

    def _tell(
        self,
        table: Table,
        place: ObjectKey,
        writer: str,
        before: Stored | None,
        after: Stored | None,
        event: WatchEvent,
    ) -> None:
        table.log.append(Event(self.revision, self._clock.monotonic(), *place, event))
        self._commit(table, place, writer, before, after)

    def _commit(self, table: Table, place: ObjectKey, writer: str, before: Stored | None, after: Stored | None) -> None:
        verb = "delete" if after is None else "update" if before else "create"
        self._history.commit(
            Version(
                at=self._clock.monotonic(),
                writer=writer,
                verb=verb,
                resource=table.resource,
                namespace=place[0],
                name=place[1],
                before=before.document if before else None,
                after=after.document if after else None,
                revision=self.revision,
            )
        )


_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


def _uid(stored: Stored) -> str:
    return str(stored.document["metadata"]["uid"])
