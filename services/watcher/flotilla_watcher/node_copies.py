"""The copies of one resource for the node channel: only nodes with a reading agent get copies of their objects.

The input is the publisher's: there is no further LIST or WATCH, for any number of nodes. The node of every object is
indexed; a copy is made only for a node that is served. When an agent asks, the node's objects are taken from kube.v1,
its copies are published, and then its marker; from then on the node is served. The stream works as that of the objects
does (one fenced writer, epochs, tombstones), and a successor reads from its markers which nodes were served.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from sys import intern

import msgspec
import structlog

from flotilla_common.api.kinds.kind import Copy, NodeRoute
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.clock import Clock
from flotilla_common.kube.reflector import HeadMeta
from flotilla_watcher import metrics
from flotilla_watcher.encoder import Encoder
from flotilla_watcher.published_objects import Key
from flotilla_watcher.writer import StreamWriter

Stored = Callable[[Sequence[Key]], Awaitable[list[Message]]]
"""Returns the newest messages on kube.v1 of these objects, after all earlier publications. Raises BusError."""


class NodeIndex:
    """The node of each object, and the objects of each node. Objects without a node are not in it."""

    def __init__(self) -> None:
        self._node: dict[Key, str] = {}
        self._keys: dict[str, set[Key]] = {}

    def put(self, key: Key, node: str) -> None:
        """Set the object's node; an empty name removes the object."""
        before = self._node.get(key, "")
        if node == before:
            return
        if before:
            keys = self._keys[before]
            keys.remove(key)
            if not keys:
                del self._keys[before]
            del self._node[key]
        if node:
            node = self._node[key] = intern(node)
            self._keys.setdefault(node, set()).add(key)

    def of(self, node: str) -> frozenset[Key]:
        """Return the objects that concern the node."""
        return frozenset(self._keys.get(node, ()))

    def without(self, keys: Set[Key]) -> list[Key]:
        """Return the objects that are not in `keys`."""
        return [key for key in self._node if key not in keys]


class NotComplete(Exception):
    """The first LIST is not complete: the node's objects are not known yet."""


class _Sent(msgspec.Struct, frozen=True):
    subject: str
    digest: int
    head: HeadMeta


class NodeCopies:
    """Copies of one resource's objects. Its methods may run concurrently."""

    def __init__(
        self,
        *,
        resource: Resource,
        route: NodeRoute,
        writer: StreamWriter,
        encoder: Encoder,
        stored: Stored,
        leftover_subjects: set[str],
        served: Iterable[str],
        clock: Clock,
        tombstone_seconds: float,
        shards: int = 1,
    ) -> None:
        """Publish the copies of one of `shards` shards."""
        self._shards = shards
        self._resource = resource
        self._route = route
        self._writer = writer
        self._encoder = encoder
        self._stored = stored
        self._tombstone_seconds = tombstone_seconds
        self._clock = clock
        marked = {subject: subjects.marked_node(subject) for subject in leftover_subjects}
        self._leftover_subjects = {subject for subject, node in marked.items() if node is None}
        self._served = {*served, *filter(None, marked.values())}
        self._asked: dict[str, float] = {}  # when a served node last asked (monotonic)
        self._index = NodeIndex()
        self._sent: dict[Key, _Sent] = {}
        self._listed: set[Key] = set()  # of the current LIST
        self._lock = asyncio.Lock()
        self._epoch = ""
        self._version = ""  # everything up to here is applied; empty during a LIST
        self._count = metrics.NODE_COPIES.labels(resource.id)
        self._gauge = metrics.NODES_SERVED.labels(resource.id)
        self._log = structlog.get_logger(resource=resource.id)

    @property
    def served(self) -> frozenset[str]:
        """The nodes that get copies."""
        return frozenset(self._served)

    async def listing(self, epoch: str) -> None:
        """Begin an epoch."""
        async with self._lock:
            self._epoch, self._version = epoch, ""
            self._listed.clear()
            await self._writer.begin(epoch, self._marker(subjects.LISTING))

    async def listed(self, head: HeadMeta, body: bytes) -> None:
        """Add one object of the LIST: its copy belongs to the new epoch, changed or not."""
        async with self._lock:
            self._listed.add((intern(head.namespace), head.name))
            await self._take(subjects.ADDED, head, body, always=True)

    async def unlisted(self, head: HeadMeta) -> None:
        """Take an object out of the LIST: it was deleted meanwhile."""
        async with self._lock:
            key = head.namespace, head.name
            self._listed.discard(key)
            self._index.put(key, "")
            await self._publish_tombstone(key)

    async def changed(self, op: str, head: HeadMeta, body: bytes) -> None:
        """Apply that an object was added, modified or deleted."""
        async with self._lock:
            await self._take(op, head, body, always=False)
            self._version = head.resource_version

    async def complete(self, version: str) -> None:
        """Delete what is not in the LIST, then mark the epoch complete for every node that is served."""
        async with self._lock:
            for key in self._index.without(self._listed):
                self._index.put(key, "")
                await self._publish_tombstone(key)
            self._listed.clear()
            for subject in sorted(self._leftover_subjects - {sent.subject for sent in self._sent.values()}):
                headers = self._encoder.headers(subjects.DELETED, self._epoch, HeadMeta(resource_version=version))
                await self._writer.put(subject, b"", headers, self._tombstone_seconds)
            self._leftover_subjects.clear()
            self._version = version
            await self._writer.mark(self._epoch, self._marker(subjects.SYNCED))
            for node in sorted(self._served):
                await self._put_marker(node, subjects.SYNCED)
            await self._writer.flush()
            self._gauge.set(len(self._served))

    async def serve(self, node: str) -> None:
        """Ensure that the node has copies of all its objects, and gets changes.

        Raises NotComplete, StreamLost, Superseded, BusError.
        """
        async with self._lock:
            self._asked[node] = self._clock.monotonic()
            if node in self._served:
                return
            if not self._version:
                raise NotComplete
            messages = await self._stored(sorted(self._index.of(node)))
            self._served.add(node)
            for message in messages:
                await self._take_stored(node, message)
            await self._writer.flush()
            await self._put_marker(node, subjects.SYNCED)
            await self._writer.flush()
            self._gauge.set(len(self._served))
            self._log.info("an agent reads, its node gets copies", node=node, copies=len(messages))

    async def retire(self, node: str, since: float) -> None:
        """Stop serving a node without a reader since then (monotonic), unless it has asked meanwhile.

        Raises StreamLost, Superseded.
        """
        async with self._lock:
            if self._asked.get(node, since) > since:
                return
            self._asked.pop(node, None)
            self._served.discard(node)
            for key in self._index.of(node):
                await self._publish_tombstone(key)
            await self._put_marker(node, subjects.LISTING, self._tombstone_seconds)
            self._gauge.set(len(self._served))
            self._log.info("no agent reads, its node gets no more copies", node=node)

    async def check(self) -> None:
        """Check that the stream still exists and is ours. Raises StreamLost, Superseded."""
        await self._writer.check()

    async def _take(self, op: str, head: HeadMeta, body: bytes, *, always: bool) -> None:
        key = intern(head.namespace), head.name
        node = "" if op == subjects.DELETED else self._node(head, body)
        self._index.put(key, node)
        copy = self._copy(head, body) if node in self._served else None
        if copy is None:
            await self._publish_tombstone(key)
        else:
            await self._send(op, node, head, copy, always=always)

    async def _take_stored(self, node: str, message: Message) -> None:
        """Add an object from kube.v1. That may be newer than the applied state, and deleted or on another node."""
        *_, namespace, name = message.subject.split(".")
        head = HeadMeta(
            name=subjects.untoken(name),
            namespace=subjects.untoken(namespace),
            uid=message.headers.get(subjects.UID, ""),
            resource_version=message.headers.get(subjects.RV, ""),
        )
        if message.headers.get(subjects.OP) == subjects.DELETED or self._node(head, message.data) != node:
            return
        copy = self._copy(head, message.data)
        if copy is not None:
            await self._send(subjects.ADDED, node, head, copy, always=True)

    async def _send(self, op: str, node: str, head: HeadMeta, copy: Copy, *, always: bool) -> None:
        key = head.namespace, head.name
        subject = subjects.node_object(node, self._resource, *key)
        sent = self._sent.get(key)
        if sent is not None and (sent.subject, sent.head.uid) != (subject, head.uid):
            await self._publish_tombstone(key)
            sent = None
        if always or sent is None or sent.digest != copy.digest:
            await self._writer.put(subject, copy.body, self._encoder.headers(op, self._epoch, head))
            self._count.inc()
        self._sent[key] = _Sent(subject, copy.digest, head)

    def _node(self, head: HeadMeta, body: bytes) -> str:
        try:
            return self._route.node(body)
        except msgspec.DecodeError as error:
            self._log.warning("cannot decode object, not copied to any node", name=head.name, error=str(error))
            return ""

    def _copy(self, head: HeadMeta, body: bytes) -> Copy | None:
        try:
            return self._route.copy(body)
        except msgspec.DecodeError as error:
            self._log.warning("cannot decode object, not copied to any node", name=head.name, error=str(error))
            return None

    async def _publish_tombstone(self, key: Key) -> None:
        """Publish a tombstone if a node has a copy of the object, which no longer concerns it."""
        sent = self._sent.pop(key, None)
        if sent is not None:
            headers = self._encoder.headers(subjects.DELETED, self._epoch, sent.head)
            await self._writer.put(sent.subject, b"", headers, self._tombstone_seconds)

    async def _put_marker(self, node: str, state: str, seconds: float | None = None) -> None:
        subject = subjects.node_marker(self._resource, node)
        await self._writer.put(subject, self._marker(state), {subjects.EPOCH: self._epoch}, seconds)

    def _marker(self, state: str) -> bytes:
        marker = subjects.Marker(epoch=self._epoch, state=state, rv=self._version)
        return msgspec.json.encode(marker.of_shards(self._shards))
