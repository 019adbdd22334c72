"""The node's copies of one kind of object; an older version never replaces a newer one.

A copy carries the epoch of the LIST that it belongs to. When the marker declares an epoch complete up to a version,
copies that are not newer and were not published in that epoch no longer exist. An epoch of another line of versions
means that etcd was restored from a backup: then all held copies are outdated, regardless of their version.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec
import structlog

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.markers import MarkerGate

T = TypeVar("T", bound=Object)
Key = tuple[str, str]  # namespace and name
Listener = Callable[[Key], None]


class Copies(Generic[T]):
    """Objects by namespace and name, fed by the node channel. Listeners get the keys of all changes."""

    def __init__(self, resource: Resource, kind: type[T]) -> None:
        self.resource = resource
        self.synced = False
        self._objects: dict[Key, T] = {}
        self._listeners: list[Listener] = []
        self._decode = msgspec.json.Decoder(kind).decode
        self._epoch = ""
        self._seen: dict[str, set[Key]] = {}  # by epoch that is not complete yet
        self._marker_gate = MarkerGate()
        self._line: str | None = None  # of the last message
        self._outdated: set[Key] = set()  # copies of another line of versions
        self._log = structlog.get_logger(resource=resource.id)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, key: Key) -> T | None:
        """Return the object of that name, or None."""
        return self._objects.get(key)

    def listen(self, listener: Listener) -> None:
        """Call `listener` after every change, and for every object once the copies are complete."""
        self._listeners.append(listener)

    def reset(self) -> None:
        """Expect the stream from its start, or another one. Copies stay until an epoch is complete."""
        self._epoch = ""
        self._seen.clear()
        self._marker_gate.forget()
        self.synced = False

    def receive(self, message: Message) -> None:
        """Apply a message of the channel. One that cannot be decoded is logged and skipped."""
        try:
            self._read(message)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            self._log.warning("unreadable copy", subject=message.subject, error=str(error))
        if (marker := self._marker_gate.due(message)) is not None:
            self._mark(marker)

    def _read(self, message: Message) -> None:
        if subjects.marked_node(message.subject) is not None:
            self._follow_line(self._marker_gate.note(message).epoch)
        else:
            self._follow_line(message.headers.get(subjects.EPOCH, ""))
            _, _, _, _, namespace, name = message.subject.split(".", 5)
            key = subjects.untoken(namespace), subjects.untoken(name)
            if message.headers.get(subjects.OP) == subjects.DELETED:
                self._bury(key, message.headers.get(subjects.UID, ""))
            else:
                self._take(key, message)

    def _follow_line(self, epoch: str) -> None:
        line = subjects.line_of(epoch)
        if self._line is not None and line != self._line:
            self._outdated = set(self._objects)
        self._line = line

    def _take(self, key: Key, message: Message) -> None:
        epoch = message.headers.get(subjects.EPOCH, "")
        if epoch != self._epoch:
            self._seen.setdefault(epoch, set()).add(key)
        found = self._decode(message.data)
        held = self._objects.get(key)
        same = held is not None and held.metadata.uid == found.metadata.uid and key not in self._outdated
        if held is not None and same and version(held) >= version(found):
            return
        self._outdated.discard(key)
        self._objects[key] = found
        self._notify(key)

    def _bury(self, key: Key, uid: str) -> None:
        """Remove an object that was deleted or no longer concerns this node; a newer one of that name stays."""
        held = self._objects.get(key)
        if held is not None and uid in ("", held.metadata.uid):
            del self._objects[key]
            self._notify(key)

    def _mark(self, marker: subjects.Marker) -> None:
        if marker.epoch != self._epoch:
            self._complete(marker)
        if not self.synced:
            self.synced = True
            for key in list(self._objects):
                self._notify(key)

    def _complete(self, marker: subjects.Marker) -> None:
        seen, complete = self._seen.get(marker.epoch, set[Key]()), int(marker.rv or 0)
        gone = [
            key
            for key, held in self._objects.items()
            if key not in seen and (version(held) <= complete or key in self._outdated)
        ]
        for key in gone:
            self._outdated.discard(key)
            del self._objects[key]
            self._notify(key)
        self._epoch = marker.epoch
        self._seen.clear()

    def _notify(self, key: Key) -> None:
        for listener in self._listeners:
            listener(key)


def version(held: Object) -> int:
    """Return the resourceVersion as a number, 0 when absent."""
    return int(held.metadata.resource_version or 0)
