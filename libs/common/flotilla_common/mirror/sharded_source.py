"""Reads some pods from all streams that the watcher shares them among: one source for each shard (docs/adr/0038).

The first shard's marker names the number of shards. When the number changes, the watcher replaces its streams, so that
every source reads its own again and judges absence in its own range of uids. What the table holds stays meanwhile.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.bus_source import BusSource
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.scope import Interests


class ShardedSource:
    """The sources of one group of interests. To the group it is one source."""

    def __init__(
        self,
        bus: Bus,
        api: Api,
        decoder: ObjectDecoder[Any],
        clock: Clock,
        on_synced: Callable[[], None],
        interests: Interests,
        name: str,
    ) -> None:
        self.interests = interests
        self._bus = bus
        self._api = api
        self._decoder = decoder
        self._clock = clock
        self._on_synced = on_synced
        self._name = name
        self._starting: dict[BusSource, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self.shards = [self._shard(0)]

    def _shard(self, index: int) -> BusSource:
        return BusSource(
            self._bus,
            self._api,
            self._decoder,
            self._clock,
            self._shard_synced,
            self.interests,
            self._name,
            index,
            lambda count: self._shard_counts(index, count),
        )

    @property
    def synced(self) -> bool:
        """Report whether every shard is in the table, and all are of the number that the first one names."""
        number = self.shards[0].count
        return len(self.shards) == number and all(shard.synced and shard.count == number for shard in self.shards)

    @property
    def trusted(self) -> bool:
        """Report whether everything is in the table, and is followed without a gap."""
        return self.synced and all(shard.trusted for shard in self.shards)

    @property
    def last_update(self) -> float:
        """Time (monotonic) of the last proof that every shard is up to date."""
        return min(shard.last_update for shard in self.shards)

    @property
    def last_listed(self) -> float:
        """Time (monotonic) of the last proof that the LIST of a shard makes progress."""
        return max(shard.last_listed for shard in self.shards)

    async def start(self) -> None:
        await self.shards[0].start()

    async def stop(self) -> None:
        await asyncio.gather(*self._ending, *map(self._end, self.shards), return_exceptions=True)

    def tick(self) -> None:
        """Raise VersionsWentBack when etcd was restored."""
        for shard in self.shards:
            shard.tick()

    def _shard_counts(self, index: int, count: int) -> None:
        """Follow as many shards as the first one names."""
        if index:
            return
        for left in self.shards[count:]:
            task = _run(self._end(left))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        del self.shards[count:]
        for number in range(len(self.shards), count):
            added = self._shard(number)
            self.shards.append(added)
            self._starting[added] = _run(added.start())

    def _shard_synced(self) -> None:
        if self.synced:
            self._on_synced()

    async def _end(self, shard: BusSource) -> None:
        """Stop a source once its start has ended: what it follows is known only then."""
        if (starting := self._starting.pop(shard, None)) is not None:
            await asyncio.gather(starting, return_exceptions=True)
        await shard.stop()


def _run(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(coroutine)
