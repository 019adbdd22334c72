"""Stores the oldest messages of last-value streams on disk again, before too many gaps follow them (docs/adr/0037).

A message that is replaced leaves a gap. With too many gaps between a stream's first and last message nats-server does
not write the stream's index any more, and after a kill it reads the whole stream. Each message that moves from the
beginning to the end closes the gaps behind it.
"""

from collections.abc import Callable, Sequence

import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Message, PublishRefused, StreamSpec
from flotilla_common.bus.streams import last_marker, newest, shards_of
from flotilla_common.clock import Clock
from flotilla_watcher import metrics

MOST_GAPS = 100_000
"""Gaps from which the oldest messages are stored again, far below the 250,000 that `flotilla doctor` warns of."""

MOST_MESSAGES = 1_000
"""Limit of messages that one check handles, about three seconds of requests."""

CHECK_SECONDS = 60.0
"""Interval of the checks."""

GONE_SECONDS = 3600.0
"""Age from which a message about an object that does not exist is removed.

A service may be ahead of the watcher, and publish a decision about an object that is not on the bus yet.
"""


class OldRecords:
    """The watch over the gaps of some streams."""

    def __init__(
        self,
        *,
        bus: Bus,
        clock: Clock,
        streams: Sequence[StreamSpec],
        resources: Sequence[Resource],
        fence: Callable[[], bool],
        most_gaps: int = MOST_GAPS,
        most_messages: int = MOST_MESSAGES,
    ) -> None:
        """Watch over those `streams` that leave gaps, while `fence` holds; `resources` are those on the bus."""
        self._bus = bus
        self._clock = clock
        self._streams = [spec.name for spec in streams if spec.leaves_gaps]
        self._resources = {
            plural: [resource for resource in resources if resource.plural == plural]
            for plural in {resource.plural for resource in resources}
        }
        self._fence = fence
        self._most_gaps = most_gaps
        self._most_messages = most_messages
        self._log = structlog.get_logger()

    async def run(self) -> None:
        """Check from time to time, until cancelled; errors are logged."""
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            try:
                await self.check()
            except BusError as error:
                self._log.warning("cannot check the gaps of streams", error=str(error))

    async def check(self) -> None:
        """Check every stream, and handle its oldest messages while it has too many gaps. Raises BusError."""
        if not self._fence():
            metrics.GAPS.clear()  # another replica reports them
            return
        for stream in self._streams:
            await self._check(stream)

    async def _check(self, stream: str) -> None:
        renewed = removed = 0
        while await self._has_too_many_gaps(stream) and renewed + removed < self._most_messages and self._fence():
            oldest = await self._bus.get_oldest(stream)
            if oldest is None:
                break
            if await self._is_gone(oldest):
                await self._bus.remove(stream, oldest)
                removed += 1
            else:
                await self._renew(stream, oldest)
                renewed += 1
        metrics.RENEWED.labels(stream).inc(renewed)
        metrics.REMOVED.labels(stream).inc(removed)
        if renewed or removed:
            self._log.info("stored old messages again", stream=stream, renewed=renewed, removed=removed)

    async def _has_too_many_gaps(self, stream: str) -> bool:
        state = await self._bus.stream_state(stream)
        gaps = state.gaps if state is not None else 0
        metrics.GAPS.labels(stream).set(gaps)
        return gaps > self._most_gaps

    async def _renew(self, stream: str, message: Message) -> None:
        try:
            await self._bus.renew(stream, message)
        except PublishRefused:
            return  # its service has replaced it meanwhile, which closes the gaps as well

    async def _is_gone(self, message: Message) -> bool:
        """Report whether the message is old, and about an object that does not exist."""
        *_, plural, namespace, name = message.subject.split(".")
        resources = self._resources.get(plural, ())
        if not resources or self._clock.now().timestamp() - message.stored_at < GONE_SECONDS:
            return False
        for resource in resources:
            if not await self._lacks(resource, subjects.untoken(namespace), subjects.untoken(name)):
                return False
        return True

    async def _lacks(self, resource: Resource, namespace: str, name: str) -> bool:
        """Report whether the object does not exist: its stream is complete before and after it is looked up."""
        before = await self._complete(resource)
        found = await newest(self._bus, resource, namespace, name)
        if not before or (found is not None and found.headers.get(subjects.OP) != subjects.DELETED):
            return False
        return before == await self._complete(resource)

    async def _complete(self, resource: Resource) -> list[str]:
        """Return the epochs of the resource's streams if they are complete, else nothing."""
        shards = await shards_of(self._bus, resource)
        markers = [await last_marker(self._bus, shard) for shard in shards]
        epochs = [one.epoch for one in markers if one is not None and one.complete and one.shard_count == len(shards)]
        return epochs if len(epochs) == len(shards) else []
