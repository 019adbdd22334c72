"""Publishes one resource, from lease to stream, for as long as this replica holds it.

The reflector pushes the apiserver's objects into the publisher; beside it the marker is repeated, and when the bus was
away the stream is checked: it may be gone, or taken over. After any failure, the next round takes it over again.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import count

import msgspec
import structlog

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource
from flotilla_common.api.uidranges import UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Message, StreamSpec
from flotilla_common.bus.pod_shards import unsharded
from flotilla_common.bus.streams import newest_in
from flotilla_common.clock import Clock, Entropy
from flotilla_common.kube.interface import Api
from flotilla_common.kube.reflector import Reflector
from flotilla_common.tracing.context import Tracer
from flotilla_watcher.encoder import Encoder
from flotilla_watcher.node_copies import NodeCopies
from flotilla_watcher.pod_sharing import AnotherNumber, Sharing, WholeResource, remove_streams
from flotilla_watcher.published_objects import Key
from flotilla_watcher.publisher import TOMBSTONE_SECONDS, ChangeSpans, Publisher, Report
from flotilla_watcher.readers import follow_readers, readers
from flotilla_watcher.routes import routes
from flotilla_watcher.version_lineage import VersionLineage, follow_lineage
from flotilla_watcher.writer import StreamLost, StreamWriter, Superseded

GUARD_SECONDS = 2.0
"""Seconds between two checks that everything sent is stored."""

MARKER_BEATS = 2
"""The marker is repeated after this many guard intervals, so that followers see within five seconds that we are alive.

It is stored only if the stream ends with our last message, so an idle stream needs no further check.
"""

LENGTH_BEATS = 30
"""The length of a stream is checked after this many guard intervals.

There are two dozen streams, and each check is a request that an idle bus has to answer.
"""

PAUSE_SECONDS = 1.0
"""Pause after a lost stream or a takeover, before the next attempt."""

Loop = Coroutine[None, None, None]


class ResourceWatch(msgspec.Struct, kw_only=True):
    """Publishes one resource until cancelled."""

    api: Api
    bus: Bus
    clock: Clock
    entropy: Entropy
    resource: Resource
    max_payload: int  # bytes
    fence: Callable[[], bool]
    report: Report
    copies: dict[Resource, NodeCopies]  # of all resources that are published now
    tracer: Tracer | None = None
    sharing: Sharing = msgspec.field(default_factory=WholeResource)
    _served: frozenset[str] = frozenset()  # nodes that got copies from us before
    _lineage: str = subjects.FIRST_LINE  # of versions; a wiped stream has none

    async def run(self) -> None:
        """Publish until cancelled. Raises VersionsWentBack when etcd was restored."""
        log = structlog.get_logger(resource=self.resource.id)
        while True:
            try:
                await self._publish(await self.sharing.choose())
            except (StreamLost, Superseded, BusError, AnotherNumber) as error:
                log.warning("publishing starts over", why=str(error))
                self.report(f"publishing starts over: {error}")
            await self.clock.sleep(PAUSE_SECONDS if self.bus.connected else GUARD_SECONDS)

    async def _publish(self, uids: UidRange) -> None:
        former = await self._leave_other_range(uids)
        writer = self._writer(subjects.kube_stream(self.resource), subjects.kube_marker(self.resource))
        encoder = Encoder(self.resource, self.max_payload, withheld=catalogue.is_confidential(self.resource))
        nodes, leftover_subjects = await self._node_copies(writer, encoder, uids), await writer.open()
        lineage = former or await follow_lineage(self.bus, self.resource)
        lineage = lineage or VersionLineage(self.sharing.line or self._lineage)
        self._lineage = lineage.name
        publisher = Publisher(
            resource=self.resource,
            writer=writer,
            encoder=encoder,
            clock=self.clock,
            entropy=self.entropy,
            report=self.report,
            leftover_subjects=leftover_subjects,
            lineage=lineage,
            spans=ChangeSpans(self.resource, self.clock, self.tracer),
            nodes=nodes,
            uids=uids,
        )
        reflector = Reflector(self.api, unsharded(self.resource), publisher, self.clock, uids=uids)
        loops = [reflector.run(), self._beat(writer, publisher, nodes), self._check_after_reconnect(writer, nodes)]
        loops.append(self._watch_range(uids))
        if nodes is None:
            await _first_failure(*loops)
        else:
            await self._publish_copies(nodes, loops)

    async def _leave_other_range(self, uids: UidRange) -> VersionLineage | None:
        """Remove the streams if they have another range of uids, and return the line of versions that they had.

        Readers then start over and keep what they have. A tombstone for what is in another stream from now on would
        say that it is gone.
        """
        if not subjects.affiliated(self.resource):
            return None
        former = await follow_lineage(self.bus, self.resource)
        if former is None or former.shards == uids.count:
            return None
        if not self.fence():
            raise Superseded("the lease may have expired")
        self._lineage = former.name
        await remove_streams(self.bus, self.resource)
        return former

    async def _watch_range(self, uids: UidRange) -> None:
        await self.sharing.watch(uids)
        await asyncio.Event().wait()

    def _writer(self, spec: StreamSpec, marker: str) -> StreamWriter:
        return StreamWriter(bus=self.bus, clock=self.clock, spec=spec, marker_subject=marker, fence=self.fence)

    async def _publish_copies(self, nodes: NodeCopies, loops: Sequence[Loop]) -> None:
        """Run the loops and serve the agents' requests for copies meanwhile."""
        self.copies[self.resource] = nodes
        try:
            await _first_failure(*loops, follow_readers(self.bus, self.clock, self.resource, nodes))
        finally:
            self._served = nodes.served
            if self.copies.get(self.resource) is nodes:
                del self.copies[self.resource]

    async def _node_copies(self, objects: StreamWriter, encoder: Encoder, uids: UidRange) -> NodeCopies | None:
        """Return the node channel's copies, or None for a resource of which nodes get none."""
        route = routes().get(unsharded(self.resource))
        if route is None:
            return None
        writer = self._writer(subjects.node_stream(self.resource), subjects.node_marker(self.resource))
        return NodeCopies(
            resource=self.resource,
            route=route,
            writer=writer,
            encoder=encoder,
            clock=self.clock,
            stored=partial(self._stored, objects),
            leftover_subjects=await writer.open(),
            served=self._served | await readers(self.bus, self.resource),
            tombstone_seconds=TOMBSTONE_SECONDS,
            shards=uids.count,
        )

    async def _stored(self, objects: StreamWriter, keys: Sequence[Key]) -> list[Message]:
        """Return objects from kube.v1, after everything sent so far. Raises BusError, StreamLost, Superseded."""
        await objects.flush()
        stream = subjects.kube_stream(self.resource).name
        last = await asyncio.gather(*(newest_in(self.bus, self.resource, *key) for key in keys))
        messages = [message for message in last if message is not None]
        if len(messages) < len(keys):
            raise StreamLost(f"stream {stream} lacks objects that were published")
        return messages

    async def _beat(self, writer: StreamWriter, publisher: Publisher, nodes: NodeCopies | None) -> None:
        for number in count(1):
            await self.clock.sleep(GUARD_SECONDS)
            await writer.flush()
            if number % MARKER_BEATS == 0:
                await publisher.beat()
                if nodes is not None:
                    await nodes.check()
            if number % LENGTH_BEATS == 0:
                await writer.check()

    async def _check_after_reconnect(self, writer: StreamWriter, nodes: NodeCopies | None) -> None:
        """Check the streams whenever the bus was away."""
        connected = asyncio.Event()
        forget = self.bus.on_connected(connected.set)
        try:
            while True:
                await connected.wait()
                connected.clear()
                await writer.check()
                if nodes is not None:
                    await nodes.check()
        finally:
            forget()


async def _first_failure(*loops: Loop) -> None:
    """Run endless loops concurrently until one fails, and raise its failure.

    No TaskGroup: one that fails while it is cancelled raises the failure and loses the cancellation (until Python
    3.13). A lost lease does both at once, and a watch that survived it would compete with its successor endlessly.
    """
    tasks = [asyncio.ensure_future(loop) for loop in loops]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
