"""The node's copies of objects, read from the node channel (docs/adr/0007). Older versions never replace newer ones.

A copy carries the epoch of the LIST that it belongs to. When the marker declares an epoch complete up to a version,
copies that are not newer and were not published in that epoch no longer exist. An epoch of another line of versions
means that etcd was restored from a backup: then all held copies are outdated, regardless of their version.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.api.uidranges import UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.markers import MarkerGate
from flotilla_common.bus.pod_shards import pod_shard
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.reader import Reader

T = TypeVar("T", bound=Object)
Key = tuple[str, str]  # namespace and name
Listener = Callable[[Key], None]

STATUS_SECONDS = 2.0
"""Interval of updating the state for /readyz, and of following the number of shards."""


class _Shard:
    """The state of reading one shard of the objects; resources other than pods have one shard."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.count = 1  # number of shards, by the last marker
        self.synced = False
        self.epoch = ""
        self.seen: dict[str, set[Key]] = {}  # by epoch that is not complete yet
        self.gate = MarkerGate()
        self.line: str | None = None  # of the last message

    def reset(self) -> None:
        self.epoch = ""
        self.seen.clear()
        self.gate.forget()
        self.synced = False

    def holds(self, copy: Object) -> bool:
        """Report whether the object is in this shard."""
        return UidRange(self.index, self.count).covers(copy.metadata.uid)


class Copies(Generic[T]):
    """Objects by namespace and name, fed by the node channel. Listeners get the keys of all changes."""

    def __init__(self, resource: Resource, kind: type[T]) -> None:
        self.resource = resource
        self.synced = False
        self._objects: dict[Key, T] = {}
        self._listeners: list[Listener] = []
        self._decode = msgspec.json.Decoder(kind).decode
        self._shards = [_Shard(0)]
        self._outdated: set[Key] = set()  # copies of another line of versions
        self._log = structlog.get_logger(resource=resource.id)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    @property
    def shards(self) -> int:
        """The number of shards to read, by the first one's last marker."""
        return self._shards[0].count

    def get(self, key: Key) -> T | None:
        """Return the object of that name, or None."""
        return self._objects.get(key)

    def listen(self, listener: Listener) -> None:
        """Call `listener` after every change, and for every object once the copies are complete."""
        self._listeners.append(listener)

    def reset(self, index: int = 0) -> None:
        """Expect the stream of a shard from its start, or another one. Copies stay until an epoch is complete."""
        if index < len(self._shards):
            self._shards[index].reset()
            self.synced = False

    def receive(self, message: Message, index: int = 0) -> None:
        """Apply a message of the channel. One that cannot be decoded is logged and skipped."""
        if index >= len(self._shards):
            return  # the number of shards was lowered
        shard = self._shards[index]
        try:
            self._read(shard, message)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            self._log.warning("unreadable copy", subject=message.subject, error=str(error))
        if (marker := shard.gate.due(message)) is not None:
            self._mark(shard, marker)

    def _read(self, shard: _Shard, message: Message) -> None:
        if subjects.marked_node(message.subject) is not None:
            self._note(shard, shard.gate.note(message))
        else:
            self._follow_line(shard, message.headers.get(subjects.EPOCH, ""))
            _, _, _, _, namespace, name = message.subject.split(".", 5)
            key = subjects.untoken(namespace), subjects.untoken(name)
            if message.headers.get(subjects.OP) == subjects.DELETED:
                self._remove(shard, key, message.headers.get(subjects.UID, ""))
            else:
                self._store(shard, key, message)

    def _note(self, shard: _Shard, marker: subjects.Marker) -> None:
        self._follow_line(shard, marker.epoch)
        shard.count = marker.shard_count
        if shard.index == 0:
            del self._shards[shard.count :]
            self._shards += [_Shard(index) for index in range(len(self._shards), shard.count)]
        self.synced = self.synced and self._all_synced()

    def _all_synced(self) -> bool:
        return all(shard.synced and shard.count == self.shards for shard in self._shards)

    def _follow_line(self, shard: _Shard, epoch: str) -> None:
        line = subjects.line_of(epoch)
        if shard.line is not None and line != shard.line:
            self._outdated |= {key for key, copy in self._objects.items() if shard.holds(copy)}
        shard.line = line

    def _store(self, shard: _Shard, key: Key, message: Message) -> None:
        epoch = message.headers.get(subjects.EPOCH, "")
        if epoch != shard.epoch:
            shard.seen.setdefault(epoch, set()).add(key)
        newer = self._decode(message.data)
        current = self._objects.get(key)
        if current is not None and key not in self._outdated and not _replaces(newer, current, shard):
            return
        self._outdated.discard(key)
        self._objects[key] = newer
        self._notify(key)

    def _remove(self, shard: _Shard, key: Key, uid: str) -> None:
        """Remove an object that was deleted or no longer concerns this node; a newer one of that name stays.

        Without a uid it is what the shard had under that name when its publisher took over.
        """
        current = self._objects.get(key)
        if current is not None and (shard.holds(current) if not uid else uid == current.metadata.uid):
            del self._objects[key]
            self._notify(key)

    def _mark(self, shard: _Shard, marker: subjects.Marker) -> None:
        if marker.epoch != shard.epoch:
            self._complete(shard, marker)
        shard.synced = True
        if not self.synced and self._all_synced():
            self.synced = True
            for key in list(self._objects):
                self._notify(key)

    def _complete(self, shard: _Shard, marker: subjects.Marker) -> None:
        seen, complete = shard.seen.get(marker.epoch, set[Key]()), int(marker.rv or 0)
        gone = [
            key
            for key, copy in self._objects.items()
            if key not in seen and shard.holds(copy) and (version(copy) <= complete or key in self._outdated)
        ]
        for key in gone:
            self._outdated.discard(key)
            del self._objects[key]
            self._notify(key)
        shard.epoch = marker.epoch
        shard.seen.clear()

    def _notify(self, key: Key) -> None:
        for listener in self._listeners:
            listener(key)


def _replaces(newer: Object, current: Object, shard: _Shard) -> bool:
    """Report whether a copy takes the place of the present one.

    One stream has the objects of a name in order. What comes from two streams is ordered by version.
    """
    if shard.count == 1 and current.metadata.uid != newer.metadata.uid:
        return True
    return version(current) < version(newer)


def version(copy: Object) -> int:
    """Return the resourceVersion as a number, 0 when absent."""
    return int(copy.metadata.resource_version or 0)


class _Readers:
    """The readers of one resource: one for each shard that its first marker names."""

    def __init__(self, context: AgentContext, resource: Resource, copies: Copies[Any]) -> None:
        self.copies = copies
        self._context = context
        self._resource = resource
        self._readers: list[tuple[Reader, asyncio.Task[None]]] = []

    @property
    def healthy(self) -> bool:
        """Report whether every delivery works."""
        return len(self._readers) == self.copies.shards and all(reader.healthy for reader, _ in self._readers)

    def tend(self, group: asyncio.TaskGroup) -> None:
        """Begin to read shards that are new, and end reading those that do not exist any more."""
        for _, task in self._readers[self.copies.shards :]:
            task.cancel()
        del self._readers[self.copies.shards :]
        for index in range(len(self._readers), self.copies.shards):
            reader = Reader(
                bus=self._context.bus,
                clock=self._context.clock,
                entropy=self._context.entropy,
                node=self._context.node,
                resource=pod_shard(index) if index else self._resource,
                on_message=partial(self.copies.receive, index=index),
                on_reset=partial(self.copies.reset, index),
            )
            self._readers.append((reader, group.create_task(reader.run())))


class Channel:
    """The copies of this node's objects."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        self._readers: dict[str, _Readers] = {}
        self._optional: set[str] = set()

    def copies(self, resource: Resource, kind: type[T], *, optional: bool = False) -> Copies[T]:
        """Return the node's objects of the resource, decoded as `kind`. Call it before `run`.

        Without `optional` the agent is not ready before it has read them; with it, the kind may be one that is not
        served here.
        """
        copies = Copies[T](resource, kind)
        self._readers[resource.plural] = _Readers(self._context, resource, copies)
        if optional:
            self._optional.add(resource.plural)
        self._context.status.ready(resource.plural, optional, "not read yet")
        return copies

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for readers in self._readers.values():
                    readers.tend(group)
                self._report()
                await self._context.clock.sleep(STATUS_SECONDS)

    def _report(self) -> None:
        status = self._context.status
        connected = self._context.bus.connected
        status.ready("bus", connected, "" if connected else "no NATS server answers")
        for plural, readers in self._readers.items():
            why = "" if readers.copies.synced else "waiting for all of the node's objects"
            if not readers.healthy:
                why = "the watcher does not deliver"
            status.ready(plural, not why or plural in self._optional, why)
