"""Publishes the apiserver's LIST and WATCH of one resource to its stream (docs/architecture.md).

A LIST is published under a new epoch between a `listing` and a `synced` marker. Objects in the stream that are not in
the LIST get a tombstone. A pod whose owner or sidecars have changed moves to another subject; the former one gets a
message that says so, after the pod itself, so that the newest message about a pod is never missing. After that every
event is one message, and the marker is repeated on bookmarks and every few seconds, so that followers can distinguish a
quiet cluster from a dead watcher. A LIST that is older than what was published before means that etcd was restored
(`version_lineage.py`). The watcher is the first to see that the spec of an object has changed, so it begins the traces
of our kinds.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.api.uidranges import EVERY_UID, UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import affiliation_of, outline
from flotilla_common.clock import Clock, Entropy
from flotilla_common.kube.reflector import HeadMeta, Way
from flotilla_common.mirror.table import VersionsWentBack, version_number
from flotilla_common.tracing.context import Span, Tracer, change
from flotilla_watcher import metrics
from flotilla_watcher.encoder import Encoder
from flotilla_watcher.node_copies import NodeCopies
from flotilla_watcher.published_objects import Entry, Key, PublishedObjects
from flotilla_watcher.version_lineage import VersionLineage
from flotilla_watcher.writer import StreamWriter

TOMBSTONE_SECONDS = 300.0
"""TTL of a delete on the bus: longer than a follower (a minute) or a node's agent (two) may be away and still resume.

The server keeps deletes in memory.
"""


class ChangeSpans:
    """Records changes and publications of one resource's objects."""

    def __init__(self, resource: Resource, clock: Clock, tracer: Tracer | None) -> None:
        self._resource = resource
        self._clock = clock
        self._tracer = tracer if resource.custom else None

    def published(self, before: Entry | None, op: str, head: HeadMeta, began: datetime) -> None:
        """Record that a version was published.

        `before` is what was published before: another generation makes this version the root of a trace.
        """
        if self._tracer is None or op == subjects.DELETED:
            return
        root, end = change(head.uid, head.generation), self._clock.now()
        attributes: dict[str, str | int | float | list[str]] = {
            "k8s.namespace.name": head.namespace,
            "k8s.object.kind": self._resource.kind,
            "k8s.object.name": head.name,
            "k8s.object.uid": head.uid,
            "k8s.object.generation": head.generation,
            "k8s.object.resource_version": head.resource_version,
        }
        kind = self._resource.kind
        if before is None or (before.uid, before.generation) != (head.uid, head.generation):
            span = Span(name=f"change {kind}", context=root, parent=None, start=began, end=end, attributes=attributes)
            self._tracer.record(span)
        version = root.version(head.resource_version)
        span = Span(name=f"publish {kind}", context=version, parent=root, start=began, end=end, attributes=attributes)
        self._tracer.record(span)


Report = Callable[[str], None]


class Publisher:
    """The sink of one resource's reflector."""

    def __init__(
        self,
        *,
        resource: Resource,
        writer: StreamWriter,
        encoder: Encoder,
        clock: Clock,
        entropy: Entropy,
        report: Report,
        leftover_subjects: set[str],
        lineage: VersionLineage,
        spans: ChangeSpans,
        nodes: NodeCopies | None = None,
        uids: UidRange = EVERY_UID,
    ) -> None:
        self._resource = resource
        self._uids = uids
        self._writer = writer
        self._encoder = encoder
        self._clock = clock
        self._entropy = entropy
        self._report = report
        self._nodes = nodes
        self._spans = spans
        self._lineage = lineage.name
        self._reached = lineage.reached  # the highest version that was published
        self._marker_subject = subjects.kube_marker(resource)
        self._leftover_subjects = leftover_subjects - {self._marker_subject}  # left in the stream by an earlier watcher
        self._known = PublishedObjects(resource)
        self._affiliated = subjects.affiliated(resource)
        self._unlisted: set[Key] = set()  # of these, what the LIST under way has not had yet
        self._listed = 0  # objects of the LIST under way
        self._epoch = ""
        self._version = ""
        self._count = 0
        self._way: Way = "pages"
        self._trouble = "listing"
        self._proof = clock.monotonic()
        self._log = structlog.get_logger(resource=resource.id)
        self._events = {
            op: metrics.EVENTS.labels(resource.id, op)
            for op in (subjects.ADDED, subjects.MODIFIED, subjects.DELETED, subjects.MOVED)
        }
        self._bytes = metrics.BYTES.labels(resource.id)

    async def listing(self, way: Way) -> None:
        """Begin an epoch."""
        # The first marker fences off every earlier writer. It contains how far the stream goes, for a successor if we
        # do not complete the LIST.
        metrics.LISTS.labels(self._resource.id, way).inc()
        self._way = way
        self._epoch, self._version = subjects.epoch(self._lineage, self._entropy.token()), ""
        self._unlisted = set(self._known)
        self._listed = self._count = 0
        await self._writer.begin(self._epoch, self._marker(subjects.LISTING, str(self._reached)))
        if self._nodes is not None:
            await self._nodes.listing(self._epoch)

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._listed += 1
        self._unlisted.discard((head.namespace, head.name))
        body = await self._publish(self._subject(head, item), subjects.ADDED, head, item)
        if self._nodes is not None:
            await self._nodes.listed(head, body)

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        subject = self._subject(head, item, gone=True)
        self._unlisted.discard((head.namespace, head.name))
        self._leftover_subjects.discard(subject)
        await self._publish(subject, subjects.DELETED, head, item)
        if self._nodes is not None:
            await self._nodes.unlisted(head)

    async def complete(self, version: str) -> None:
        """Delete what the LIST lacks, then mark the epoch complete. Raises VersionsWentBack."""
        if 0 < version_number(version) < self._reached:
            text = f"{self._resource.plural} were published up to resourceVersion {self._reached}, a LIST has {version}"
            raise VersionsWentBack(f"{text}: etcd was restored, restarting")
        deleted = await self._publish_absences(version)
        metrics.TOMBSTONES.labels(self._resource.id).inc(deleted)
        self._count = len(self._known)
        self._log.info(
            "listed", objects=self._count, way=self._way, deleted=deleted, epoch=self._epoch, version=version
        )
        await self.progress(version)
        if self._nodes is not None:
            await self._nodes.complete(version)

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        subject = self._subject(head, item, gone=kind == subjects.DELETED)
        before, began = self._known.get((head.namespace, head.name)), self._clock.now()
        body = await self._publish(subject, kind, head, item)
        self._spans.published(before, kind, head, began)
        if self._nodes is not None:
            await self._nodes.changed(kind, head, body)
        self._advance(head.resource_version)

    async def progress(self, version: str) -> None:
        self._advance(version)
        await self._mark()

    def _advance(self, version: str) -> None:
        self._version = version
        self._reached = max(self._reached, version_number(version))
        self._proof = self._clock.monotonic()

    def state(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._report(trouble)
            self._log.info("watching" if not trouble else "not watching", why=trouble)

    async def beat(self) -> None:
        """Repeat the marker, while the watch is known to work, or a LIST makes progress."""
        metrics.LAG.labels(self._resource.id).set(self._clock.monotonic() - self._proof if self._trouble else 0.0)
        if not self._trouble and self._version:
            started = self._clock.monotonic()
            await self._mark()
            metrics.EVENT_SECONDS.labels(self._resource.id).set(self._clock.monotonic() - started)
        elif not self._version and self._listed > self._count:
            # A LIST of a hundred thousand objects takes longer than followers wait for a silent bus.
            self._count = self._listed
            await self._writer.mark(self._epoch, self._marker(subjects.LISTING, str(self._reached)))

    def _subject(self, head: HeadMeta, item: msgspec.Raw, *, gone: bool = False) -> str:
        """Return the subject of the object; of one that is `gone`, that of its last message."""
        if not self._affiliated:
            return subjects.kube(self._resource, head.namespace, head.name)
        if gone and (known := self._known.subject((head.namespace, head.name))):
            return known
        return subjects.pod(head.namespace, head.name, affiliation_of(outline(item)), self._resource)

    async def _publish(self, subject: str, op: str, head: HeadMeta, item: msgspec.Raw) -> bytes:
        """Publish the object, end its former subject if it had another, and return its body."""
        body, headers = self._encoder.message(op, self._epoch, head, item)
        key = head.namespace, head.name
        if op == subjects.DELETED:
            self._known.pop(key)
            await self._writer.put(subject, body, headers, TOMBSTONE_SECONDS)
        else:
            former = self._known.subject(key) if self._affiliated else subject
            self._known.put(head, subject)
            await self._writer.put(subject, body, headers)
            if former not in ("", subject):
                await self._publish_move(former, subject, head)
        if subjects.OVERSIZE in headers:
            metrics.OVERSIZE.labels(self._resource.id).inc()
        self._events[op].inc()
        self._bytes.inc(len(body))
        return body

    async def _publish_move(self, former: str, subject: str, head: HeadMeta) -> None:
        """Publish on the former subject of an object that it is on another one."""
        headers = self._encoder.headers(subjects.MOVED, self._epoch, head) | {subjects.TO: subject}
        await self._writer.put(former, self._encoder.identity(head), headers, TOMBSTONE_SECONDS)
        self._events[subjects.MOVED].inc()

    async def _publish_absences(self, version: str) -> int:
        """Publish what the LIST lacks, and return how many objects are gone."""
        gone = len(self._unlisted)
        for key in sorted(self._unlisted):
            subject = self._known.subject(key)
            self._leftover_subjects.discard(subject)
            await self._publish_tombstone(subject, self._known.pop(key), version)
        for subject in sorted(self._leftover_subjects):
            key = self._key(subject)
            successor = self._known.subject(key)
            if successor == subject:
                continue
            if successor and self._affiliated:
                await self._publish_move(subject, successor, self._known.head(key))
            else:
                await self._publish_tombstone(subject, None, version)
                gone += 1
        self._unlisted.clear()
        self._leftover_subjects.clear()
        return gone

    def _key(self, subject: str) -> Key:
        """Return namespace and name of the subject's object; empty for a message of another publisher in our stream."""
        try:
            return subjects.object_key(subject)
        except ValueError:
            return "", ""

    async def _publish_tombstone(self, subject: str, head: HeadMeta | None, version: str) -> None:
        """Publish a tombstone for an object whose delete was not seen."""
        # Of a subject left by another writer only the name is known: the body is empty, and followers drop the object
        # because it is not part of the epoch.
        body = self._encoder.identity(head) if head else b""
        headers = self._encoder.headers(subjects.DELETED, self._epoch, head or HeadMeta(resource_version=version))
        await self._writer.put(subject, body, headers, TOMBSTONE_SECONDS)

    async def _mark(self) -> None:
        await self._writer.mark(self._epoch, self._marker(subjects.SYNCED, self._version))

    def _marker(self, state: str, version: str) -> bytes:
        marker = subjects.Marker(epoch=self._epoch, state=state, rv=version, count=self._count, layout=subjects.LAYOUT)
        return msgspec.json.encode(marker.of_shards(self._uids.count))
