"""One resource, from lease to stream, for as long as this replica holds it.

The reflector pushes what the apiserver says into the publisher; beside it a guard repeats the marker and looks whether
the stream is still there and still ours. Whatever ends them, the next round takes the stream over anew.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Message
from flotilla_common.clock import Clock, Entropy
from flotilla_common.kube.interface import Api
from flotilla_common.kube.reflector import Reflector
from flotilla_watcher.content import Content
from flotilla_watcher.node_copies import NodeCopies
from flotilla_watcher.node_index import Key
from flotilla_watcher.node_readers import follow_readers, readers
from flotilla_watcher.publisher import TOMBSTONE_SECONDS, Publisher, Report
from flotilla_watcher.routes import routes
from flotilla_watcher.writer import StreamLost, StreamWriter, Superseded

GUARD_SECONDS = 1.0
"""How often an idle stream is looked at: a wiped bus is filled again within two seconds."""

MARKER_BEATS = 5
"""The marker is repeated after this many looks, so that followers know within five seconds that we live."""

PAUSE_SECONDS = 1.0
"""After a lost stream or a rival, before the next attempt."""

Loop = Coroutine[None, None, None]


class ResourceWatch:
    """Publishes one resource until cancelled."""

    def __init__(
        self,
        *,
        api: Api,
        bus: Bus,
        clock: Clock,
        entropy: Entropy,
        resource: Resource,
        max_payload: int,
        fence: Callable[[], bool],
        report: Report,
        copies: dict[Resource, NodeCopies],
    ) -> None:
        self._api = api
        self._bus = bus
        self._clock = clock
        self._entropy = entropy
        self._resource = resource
        self._content = Content(resource, max_payload)
        self._fence = fence
        self._report = report
        self._copies = copies  # of all resources, as far as they are published now
        self._served: frozenset[str] = frozenset()  # nodes that got copies from us before
        self._log = structlog.get_logger(resource=resource.id)

    async def run(self) -> None:
        while True:
            try:
                await self._publish()
            except (StreamLost, Superseded, BusError) as error:
                self._log.warning("publishing starts over", why=str(error))
                self._report(f"publishing starts over: {error}")
            await self._clock.sleep(PAUSE_SECONDS if self._bus.connected else GUARD_SECONDS)

    async def _publish(self) -> None:
        writer = StreamWriter(
            bus=self._bus,
            clock=self._clock,
            spec=subjects.kube_stream(self._resource),
            marker_subject=subjects.kube_marker(self._resource),
            fence=self._fence,
        )
        nodes = await self._node_copies(writer)
        publisher = Publisher(
            resource=self._resource,
            writer=writer,
            content=self._content,
            clock=self._clock,
            entropy=self._entropy,
            report=self._report,
            strangers=await writer.open(),
            nodes=nodes,
        )
        reflector = Reflector(self._api, self._resource, publisher, self._clock)
        loops = [reflector.run(), self._guard(writer, publisher, nodes)]
        if nodes is None:
            await _first_failure(*loops)
        else:
            await self._publish_copies(nodes, loops)

    async def _publish_copies(self, nodes: NodeCopies, loops: Sequence[Loop]) -> None:
        """Run the loops; meanwhile agents may ask for copies."""
        self._copies[self._resource] = nodes
        try:
            await _first_failure(*loops, follow_readers(self._bus, self._clock, self._resource, nodes))
        finally:
            self._served = nodes.served
            if self._copies.get(self._resource) is nodes:
                del self._copies[self._resource]

    async def _node_copies(self, objects: StreamWriter) -> NodeCopies | None:
        """The node channel's side, for a resource of which nodes get copies."""
        route = routes().get(self._resource)
        if route is None:
            return None
        writer = StreamWriter(
            bus=self._bus,
            clock=self._clock,
            spec=subjects.node_stream(self._resource),
            marker_subject=subjects.node_marker(self._resource),
            fence=self._fence,
        )
        return NodeCopies(
            resource=self._resource,
            route=route,
            writer=writer,
            content=self._content,
            clock=self._clock,
            stored=partial(self._stored, objects),
            strangers=await writer.open(),
            served=self._served | await readers(self._bus, self._resource),
            tombstone_seconds=TOMBSTONE_SECONDS,
        )

    async def _stored(self, objects: StreamWriter, keys: Sequence[Key]) -> list[Message]:
        """Objects as they are on kube.v1, with everything sent so far. Raises BusError, StreamLost, Superseded."""
        await objects.flush()
        stream = subjects.kube_stream(self._resource).name
        found = await asyncio.gather(*(self._bus.get_last(stream, subjects.kube(self._resource, *key)) for key in keys))
        messages = [message for message in found if message is not None]
        if len(messages) < len(keys):
            raise StreamLost(f"stream {stream} lacks objects that were published")
        return messages

    async def _guard(self, writer: StreamWriter, publisher: Publisher, nodes: NodeCopies | None) -> None:
        while True:
            for _ in range(MARKER_BEATS):
                await self._clock.sleep(GUARD_SECONDS)
                await writer.check()
                if nodes is not None:
                    await nodes.check()
            await publisher.beat()


async def _first_failure(*loops: Loop) -> None:
    """Run endless loops side by side until one fails, and raise that.

    No TaskGroup: one that fails while it is cancelled raises the failure and loses the cancellation (until Python
    3.13). A lost lease does both at once, and a watch that survived it would fight with its successor for ever.
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
