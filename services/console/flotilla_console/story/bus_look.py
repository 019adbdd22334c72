"""Looks at the bus and at the leases, once for all viewers: rates are differences of two looks."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.resources import LEASE
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import Clock
from flotilla_common.control.leases import Lease
from flotilla_common.control.shards import SERVICE_LABEL
from flotilla_common.kube.interface import Api, ApiError, Unreachable, pages
from flotilla_insight.bus.gather import BusSnapshot, markers
from flotilla_insight.bus.streams import Stream, list_consumers, list_streams

EVERY_SECONDS = 5.0
"""A look is shown to all viewers for this time."""

FIRST_SECONDS = 1.0
"""Time between the two looks of the first viewer."""

STALE_SECONDS = 60.0
"""After this time without a viewer the last look is no base for rates."""

LOOK_SECONDS = 10.0
"""Deadline of one look."""

MOST_LEASES = 1000

PUBLISH = ("$JS.API.STREAM.LIST", "$JS.API.CONSUMER.LIST.*", "$JS.API.STREAM.MSG.GET.*")
"""Subjects on which a service has to publish to look at the bus."""


class BusLook(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the bus and of the leases; what could not be read is None or empty, with the error."""

    snapshot: BusSnapshot | None = None
    bus_error: str = ""
    leases: Sequence[Lease] = ()
    leases_error: str = ""


class BusWatcher:
    """Looks when a viewer asks, at most every five seconds."""

    def __init__(self, bus: NatsBus, api: Api, clock: Clock, namespace: str) -> None:
        self._bus = bus
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._task: asyncio.Task[BusLook] | None = None
        self._begun = 0.0
        self._streams: Sequence[Stream] = ()
        self._streams_at = float("-inf")

    async def look(self) -> BusLook:
        """Return the present state. A viewer who leaves does not end the look of the others."""
        now = self._clock.monotonic()
        if self._task is None or (self._task.done() and now - self._begun > EVERY_SECONDS):
            self._begun = now
            self._task = asyncio.create_task(self._look())
        return await asyncio.shield(self._task)

    async def _look(self) -> BusLook:
        snapshot, bus_error = None, ""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                snapshot = await self._snapshot()
        except BusError as error:
            bus_error = str(error)
        except TimeoutError:
            bus_error = f"the bus did not answer within {LOOK_SECONDS:g} s"
        leases: Sequence[Lease] = ()
        leases_error = ""
        try:
            leases = await self._leases()
        except (ApiError, Unreachable, ValueError) as error:
            leases_error = str(error)
        return BusLook(snapshot=snapshot, bus_error=bus_error, leases=leases, leases_error=leases_error)

    async def _snapshot(self) -> BusSnapshot:
        if self._clock.monotonic() - self._streams_at > STALE_SECONDS:
            self._remember(await list_streams(self._bus))
            await self._clock.sleep(FIRST_SECONDS)
        before, at = self._streams, self._streams_at
        streams = await list_streams(self._bus)
        self._remember(streams)
        return BusSnapshot(
            now=self._clock.now(),
            seconds=max(self._streams_at - at, 0.001),
            before=before,
            streams=streams,
            consumers=[one for stream in streams for one in await list_consumers(self._bus, stream.name)],
            markers=await markers(self._bus, streams),
            beats=(),
            stream_bytes=estimated_bytes(before, streams),
            busiest=(),
            largest=(),
        )

    def _remember(self, streams: Sequence[Stream]) -> None:
        self._streams, self._streams_at = streams, self._clock.monotonic()

    async def _leases(self) -> Sequence[Lease]:
        """Return Flotilla's leases. Raises ApiError, Unreachable, and ValueError for one that cannot be decoded."""
        found: list[Lease] = []
        async for page in pages(self._api, LEASE, self._namespace, label_selector=SERVICE_LABEL):
            found += [msgspec.json.decode(raw, type=Lease) for raw in page.items]
            if len(found) >= MOST_LEASES:
                break
        return found[:MOST_LEASES]


def estimated_bytes(before: Sequence[Stream], after: Sequence[Stream]) -> Mapping[str, int]:
    """Return the bytes published to each stream between two looks: new messages of the mean size of those it holds."""
    last = {stream.name: stream.last_sequence for stream in before}
    return {
        one.name: max(one.last_sequence - last.get(one.name, one.last_sequence), 0) * one.bytes // max(one.messages, 1)
        for one in after
    }
