"""The tables of a recording, fed by its messages as a service's own tables are.

A service sees the result of its own write before the bus delivers it. So the version that a recorded write left is
looked up in the file, wherever it is, and applied at once.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from flotilla_cli.bundle.records import Recorded
from flotilla_cli.published import Act
from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.control.objectref import ObjectRef
from flotilla_common.kube.reflector import decode_head
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.table import Indexer, Table, version_of

T = TypeVar("T", bound=Object)


class RecordedTables:
    """Supplies the tables of a gatherer in a replay."""

    def __init__(self, messages: Iterable[Recorded]) -> None:
        self._decoders: dict[str, ObjectDecoder[Any]] = {}  # by the resource's id
        self._by_kind: dict[str, ObjectDecoder[Any]] = {}
        self._versions = {
            (message.subject, message.headers.get(subjects.RV, "")): message
            for message in messages
            if message.subject.startswith("kube.v1.")
        }
        self._changes = 0

    def add(self, resource: Resource, kind: type[T], indexes: Mapping[str, Indexer[T]]) -> Table[T]:
        """Add a table of the resource's objects."""
        table = Table[T](indexes)
        table.listen(self._count)
        self._decoders[resource.id] = self._by_kind[resource.kind] = ObjectDecoder(resource, kind, table)
        return table

    def take(self, recorded: Recorded) -> bool:
        """Apply a message of the watcher's. Return whether it changed a table."""
        decoder = self._decoder(recorded)
        if decoder is None:
            return False
        before, message = self._changes, recorded.message()
        if recorded.headers.get(subjects.OP) != subjects.DELETED:
            decoder.take(message.data)
        elif message.data:
            decoder.drop(decode_head(message.data).metadata)
        return self._changes > before

    def readable(self, subject: ObjectRef) -> bool:
        """Report whether the object's newest version could be decoded; no service plans with an older one."""
        return subject.uid not in self._decoders[subject.resource.id].undecodable

    def lacks(self, recorded: Recorded) -> bool:
        """Report whether the message is the watcher's and newer than the tables."""
        decoder = self._decoder(recorded)
        if decoder is None:
            return False
        held = decoder.table.by_uid(recorded.headers.get(subjects.UID, ""))
        if held is None:
            return recorded.headers.get(subjects.OP) != subjects.DELETED
        return version_of(held) < int(recorded.headers.get(subjects.RV) or 0)

    def wrote(self, act: Act) -> bool:
        """Apply the result of a write. Return False if the file does not hold that version."""
        decoder = self._by_kind.get(act.kind)
        if decoder is None or act.outcome != "Ok":
            return True
        subject = subjects.kube(decoder.resource, act.namespace, act.name)
        left = self._versions.get((subject, act.resource_version))
        if act.action == "delete" and (left is None or "deletionTimestamp" not in left.body.get("metadata", {})):
            held = decoder.table.get(act.namespace, act.name)
            if held is not None:
                decoder.table.remove(act.namespace, act.name, held.metadata.uid)
            return True
        if left is not None and left.headers.get(subjects.OP) != subjects.DELETED:
            self.take(left)
        return left is not None or not act.resource_version

    def _decoder(self, recorded: Recorded) -> ObjectDecoder[Any] | None:
        """Return the intake for the message; None for other messages, and objects that the bus only names."""
        if not recorded.subject.startswith("kube.v1.") or subjects.names_only(recorded.headers):
            return None
        _, _, group, plural, *_ = recorded.subject.split(".")
        return self._decoders.get(f"{group}.{plural}")

    def _count(self, old: object, new: object) -> None:
        self._changes += 1
