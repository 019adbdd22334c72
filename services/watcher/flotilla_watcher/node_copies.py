"""The node channel's side of a resource: each object's copy goes to the node that it concerns, and to no other.

It lives on what the publisher takes anyway: no LIST and no WATCH of its own, whatever the number of nodes. The stream
works as that of the objects does (one fenced writer, epochs, tombstones), but one marker serves all nodes.
"""

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.clock import Clock
from flotilla_common.kube.reflector import HeadMeta
from flotilla_watcher import metrics
from flotilla_watcher.content import Content
from flotilla_watcher.routes import Copy, Route
from flotilla_watcher.writer import StreamWriter

MARKER_SECONDS = 30.0
"""How often the marker is repeated: every node gets it, and nobody falls back to anything without it."""

_Key = tuple[str, str]


class _Sent(msgspec.Struct, frozen=True):
    subject: str
    digest: int
    head: HeadMeta


class NodeCopies:
    """Copies of one resource's objects for all nodes."""

    def __init__(
        self,
        *,
        resource: Resource,
        route: Route,
        writer: StreamWriter,
        content: Content,
        clock: Clock,
        strangers: set[str],
        tombstone_seconds: float,
    ) -> None:
        self._resource = resource
        self._route = route
        self._writer = writer
        self._content = content
        self._clock = clock
        self._tombstone_seconds = tombstone_seconds
        self._strangers = strangers - {subjects.node_marker(resource)}
        self._sent: dict[_Key, _Sent] = {}
        self._listed: set[str] = set()  # subjects of the LIST under way
        self._epoch = ""
        self._marked = clock.monotonic()
        self._count = metrics.NODE_COPIES.labels(resource.id)
        self._log = structlog.get_logger(resource=resource.id)

    async def listing(self, epoch: str) -> None:
        """Begin an epoch."""
        self._epoch = epoch
        self._listed.clear()
        await self._writer.begin(epoch, self._marker(subjects.LISTING, ""))

    async def listed(self, head: HeadMeta, body: bytes) -> None:
        """One object of the LIST: its copy belongs to the new epoch, changed or not."""
        copy = await self._take(subjects.ADDED, head, body, always=True)
        if copy:
            self._listed.add(copy)

    async def changed(self, op: str, head: HeadMeta, body: bytes) -> None:
        """An object was added, modified or deleted."""
        await self._take(op, head, body, always=False)

    async def complete(self, version: str) -> None:
        """Bury what is not in the LIST, then say that the epoch is complete."""
        for key, sent in list(self._sent.items()):
            if sent.subject not in self._listed:
                await self._bury(key)
        for subject in sorted(self._strangers - self._listed):
            headers = self._content.headers(subjects.DELETED, self._epoch, HeadMeta(resource_version=version))
            await self._writer.put(subject, b"", headers, self._tombstone_seconds)
        self._strangers.clear()
        await self._mark(version)

    async def beat(self, version: str) -> None:
        """Repeat the marker now and then."""
        if self._clock.monotonic() - self._marked >= MARKER_SECONDS:
            await self._mark(version)

    async def check(self) -> None:
        """Look whether the stream is still there and still ours. StreamLost, Superseded."""
        await self._writer.check()

    async def _take(self, op: str, head: HeadMeta, body: bytes, *, always: bool) -> str:
        """Returns the subject of the copy, if the object concerns a node."""
        key = head.namespace, head.name
        copy = None if op == subjects.DELETED else self._routed(head, body)
        sent = self._sent.get(key)
        if copy is None:
            if sent is not None:
                await self._bury(key)
            return ""
        subject = subjects.node_object(copy.node, self._resource, head.namespace, head.name)
        if sent is not None and (sent.subject, sent.head.uid) != (subject, head.uid):
            await self._bury(key)
            sent = None
        if always or sent is None or sent.digest != copy.digest:
            await self._writer.put(subject, copy.body, self._content.headers(op, self._epoch, head))
            self._count.inc()
        self._sent[key] = _Sent(subject, copy.digest, head)
        return subject

    def _routed(self, head: HeadMeta, body: bytes) -> Copy | None:
        try:
            return self._route(body)
        except msgspec.DecodeError as error:
            self._log.warning("unreadable object goes to no node", name=head.name, error=str(error))
            return None

    async def _bury(self, key: _Key) -> None:
        sent = self._sent.pop(key)
        headers = self._content.headers(subjects.DELETED, self._epoch, sent.head)
        await self._writer.put(sent.subject, b"", headers, self._tombstone_seconds)

    async def _mark(self, version: str) -> None:
        self._marked = self._clock.monotonic()
        await self._writer.mark(self._epoch, self._marker(subjects.SYNCED, version))

    def _marker(self, state: str, version: str) -> bytes:
        return msgspec.json.encode(subjects.Marker(epoch=self._epoch, state=state, rv=version, count=len(self._sent)))
