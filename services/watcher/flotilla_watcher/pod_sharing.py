"""Decides which pods the holder of a lease publishes: all, or one shard of several (docs/adr/0038).

The holder of the first shard decides on the number, by its setting and by what the apiserver can do, and publishes it
in its markers. The others follow that number. So replicas with different settings never publish different layouts.
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.api.uidranges import EVERY_UID, MOST_RANGES, UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError
from flotilla_common.bus.pod_shards import pod_shard, pod_shards
from flotilla_common.bus.streams import last_marker
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable

PROBED = 20
"""Pods in the answer to a probe: enough that uids in the right range are no accident."""

PROBE_SECONDS = 60.0
"""Interval of asking the apiserver again what it can do."""

PROBES = 2
"""Answers in a row that must differ from what is published. Of several apiservers one may be upgraded before others."""

BUSY = frozenset({429, 503, 504})
"""Codes of an apiserver that cannot answer now. Others are taken for a refusal: pods must not wait for it to end."""

FOLLOW_SECONDS = 2.0
"""Interval of reading the number of shards in the first one's marker."""

UNSUPPORTED = (
    "the apiserver has no shards of lists and watches (Kubernetes 1.36 with the feature gate ShardedListAndWatch)"
)
OTHERWISE = "the apiserver assigns uids to shards in another way than this release"

Remark = Callable[[str], None]
"""Called with the reason why less is shared than the setting says; empty if all of it is."""


class AnotherNumber(Exception):
    """The number of shards has changed: everything has to be published again, in other streams."""


class Sharing(Protocol):
    """The part of a resource that one replica publishes."""

    line: str
    """The line of versions for a stream that is new; empty if unknown."""

    async def choose(self) -> UidRange:
        """Wait until there is something to publish, and return the range of its uids. Raises BusError."""
        ...

    async def watch(self, uids: UidRange) -> None:
        """Raise AnotherNumber when the range is not right any more, otherwise never return."""
        ...


class WholeResource:
    """All objects of a resource that is never shared."""

    line = ""

    async def choose(self) -> UidRange:
        return EVERY_UID

    async def watch(self, uids: UidRange) -> None:
        """Return: the range never changes."""


class FirstShard:
    """The first shard of the pods, or all of them."""

    line = ""

    def __init__(self, api: Api, bus: Bus, clock: Clock, shards: int, remark: Remark) -> None:
        self._api = api
        self._bus = bus
        self._clock = clock
        self._shards = shards
        self._remark = remark
        self._log = structlog.get_logger(resource=POD.id)

    async def choose(self) -> UidRange:
        while (why := await self._obstacle()) is None:
            await self._clock.sleep(FOLLOW_SECONDS)
        self._remark(f"it publishes all pods: {why}" if why else "")
        if why:
            self._log.warning("pods are not shared", wanted=self._shards, why=why)
        return EVERY_UID if why else UidRange(0, self._shards)

    async def watch(self, uids: UidRange) -> None:
        """Remove streams of shards that do not exist any more, then ask the apiserver again from time to time."""
        await self._clock.sleep(PROBE_SECONDS)
        await self._remove_beyond(uids.count)
        differing = 0
        while self._shards > 1:
            await self._clock.sleep(PROBE_SECONDS)
            why = await self._obstacle()
            differs = why is not None and (1 if why else self._shards) != uids.count
            differing = differing + 1 if differs else 0
            if differing >= PROBES:
                raise AnotherNumber(why or f"the apiserver can send {self._shards} shards now")

    async def _obstacle(self) -> str | None:
        """Return why the apiserver cannot send shards, empty if it can; None if it does not answer."""
        if self._shards == 1:
            return ""
        first = UidRange(0, self._shards)
        try:  # whole pods: a list of their metadata has no shardInfo
            page = await self._api.list(POD, limit=PROBED, shard_selector=first.selector)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.code not in BUSY:
                return f"the apiserver refuses shards: {error.message}"
            self._log.warning("cannot ask for shards", error=str(error))
            return None
        if not page.sharded:
            return UNSUPPORTED
        return "" if all(first.covers(metadata_of(item).uid) for item in page.items) else OTHERWISE

    async def _remove_beyond(self, shards: int) -> None:
        """Remove streams of shards that no replica publishes, after the number was lowered."""
        try:
            for shard in pod_shards(MOST_RANGES)[shards:]:
                if await self._bus.stream_state(subjects.kube_stream(shard).name) is not None:
                    await remove_streams(self._bus, shard)
        except BusError as error:
            self._log.warning("cannot remove streams of former shards", error=str(error))


class OtherShard:
    """Another shard than the first, whose marker decides whether it exists."""

    def __init__(self, bus: Bus, clock: Clock, index: int, remark: Remark) -> None:
        self.line = ""
        self._bus = bus
        self._clock = clock
        self._index = index
        self._remark = remark
        self._log = structlog.get_logger(resource=pod_shard(index).id)

    async def choose(self) -> UidRange:
        idle = ""
        while True:
            marker = await last_marker(self._bus, POD)
            if marker is not None and marker.shard_count > self._index:
                self.line = subjects.line_of(marker.epoch)
                self._remark("")
                return UidRange(self._index, marker.shard_count)
            why = _why_idle(marker)
            if why != idle:
                idle = why
                self._log.info("nothing to publish", why=why)
                self._remark(f"idle: {why}")
                if marker is not None:
                    await remove_streams(self._bus, pod_shard(self._index))
            await self._clock.sleep(FOLLOW_SECONDS)

    async def watch(self, uids: UidRange) -> None:
        while True:
            await self._clock.sleep(FOLLOW_SECONDS)
            try:
                marker = await last_marker(self._bus, POD)
            except BusError:
                continue  # the writer notices, too
            if marker is not None and marker.shard_count != uids.count:
                raise AnotherNumber(f"the pods have {marker.shard_count} shards now, not {uids.count}")


def _why_idle(marker: subjects.Marker | None) -> str:
    if marker is None:
        return "the first shard has no marker yet"
    whole = "the holder of the first shard publishes all pods"
    return whole if marker.shard_count == 1 else f"the pods have {marker.shard_count} shards only"


async def remove_streams(bus: Bus, shard: Resource) -> None:
    """Remove the streams of a shard. Raises BusError.

    That of the copies is first: the marker in that of the objects says which range both have.
    """
    await bus.delete_stream(subjects.node_stream(shard).name)
    await bus.delete_stream(subjects.kube_stream(shard).name)
