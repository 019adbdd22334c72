"""The node's copies of objects, read from the node channel (docs/adr/0007). Older versions never replace newer ones.

A copy carries the epoch of the LIST that it belongs to. When the marker declares an epoch complete up to a version,
copies that are not newer and were not published in that epoch no longer exist. An epoch of another line of versions
means that etcd was restored from a backup: then all held copies are outdated, regardless of their version.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec
import structlog

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.markers import MarkerGate
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.reader import Reader

T = TypeVar("T", bound=Object)
Key = tuple[str, str]  # namespace and name
Listener = Callable[[Key], None]

STATUS_SECONDS = 2.0
"""Interval of updating the state for /readyz."""


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
                self._remove(key, message.headers.get(subjects.UID, ""))
            else:
                self._store(key, message)

    def _follow_line(self, epoch: str) -> None:
        line = subjects.line_of(epoch)
        if self._line is not None and line != self._line:
            self._outdated = set(self._objects)
        self._line = line

    def _store(self, key: Key, message: Message) -> None:
        epoch = message.headers.get(subjects.EPOCH, "")
        if epoch != self._epoch:
            self._seen.setdefault(epoch, set()).add(key)
        newer = self._decode(message.data)
        current = self._objects.get(key)
        same = current is not None and current.metadata.uid == newer.metadata.uid and key not in self._outdated
        if current is not None and same and version(current) >= version(newer):
            return
        self._outdated.discard(key)
        self._objects[key] = newer
        self._notify(key)

    def _remove(self, key: Key, uid: str) -> None:
        """Remove an object that was deleted or no longer concerns this node; a newer one of that name stays."""
        current = self._objects.get(key)
        if current is not None and uid in ("", current.metadata.uid):
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
            for key, copy in self._objects.items()
            if key not in seen and (version(copy) <= complete or key in self._outdated)
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


def version(copy: Object) -> int:
    """Return the resourceVersion as a number, 0 when absent."""
    return int(copy.metadata.resource_version or 0)


class Channel:
    """The copies of this node's objects."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        self._readers: dict[str, tuple[Reader, Callable[[], bool]]] = {}
        self._optional: set[str] = set()

    def copies(self, resource: Resource, kind: type[T], *, optional: bool = False) -> Copies[T]:
        """Return the node's objects of the resource, decoded as `kind`. Call it before `run`.

        Without `optional` the agent is not ready before it has read them; with it, the kind may be one that is not
        served here.
        """
        copies = Copies[T](resource, kind)
        reader = Reader(
            bus=self._context.bus,
            clock=self._context.clock,
            entropy=self._context.entropy,
            node=self._context.node,
            resource=resource,
            on_message=copies.receive,
            on_reset=copies.reset,
        )
        self._readers[resource.plural] = reader, lambda: copies.synced
        if optional:
            self._optional.add(resource.plural)
        self._context.status.ready(resource.plural, optional, "not read yet")
        return copies

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reader, _ in self._readers.values():
                group.create_task(reader.run())
            group.create_task(self._watch())

    async def _watch(self) -> None:
        status = self._context.status
        while True:
            connected = self._context.bus.connected
            status.ready("bus", connected, "" if connected else "no NATS server answers")
            for plural, (reader, synced) in self._readers.items():
                why = "" if synced() else "waiting for all of the node's objects"
                if not reader.healthy:
                    why = "the watcher does not deliver"
                status.ready(plural, not why or plural in self._optional, why)
            await self._context.clock.sleep(STATUS_SECONDS)
