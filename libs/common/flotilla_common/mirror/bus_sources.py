"""Reads some objects of a resource from the watcher's stream: one source for each group of interests.

When a group changes, another source begins beside the old one and takes its place once it is synced, so the table is
complete at every moment. Further changes wait for that, so a burst of them costs two sources. What only shrinks waits a
while, because objects that need pods come and go.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from typing import Any

import msgspec

from flotilla_common.bus.affiliation import Interest
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.scope import EVERYTHING, Interests, Scope
from flotilla_common.mirror.sharded_source import ShardedSource

SHRINK_SECONDS = 60.0
"""Seconds after the last change of the scope until objects that are no longer needed are dropped."""


class _Group(msgspec.Struct, eq=False):
    """The sources of one group: the synced one, and the one that is to replace it."""

    serving: ShardedSource | None = None
    successor: ShardedSource | None = None

    @property
    def newest(self) -> ShardedSource | None:
        return self.successor or self.serving

    @property
    def sources(self) -> list[ShardedSource]:
        return [source for source in (self.serving, self.successor) if source is not None]


class BusSources:
    """The bus sources of a table that holds what a scope covers. To a feed it is a bus source."""

    def __init__(
        self,
        bus: Bus,
        api: Api,
        decoder: ObjectDecoder[Any],
        clock: Clock,
        scope: Scope,
        on_synced: Callable[[], None],
    ) -> None:
        self._bus = bus
        self._api = api
        self._decoder = decoder
        self._clock = clock
        self._scope = scope
        self._on_synced = on_synced
        self._groups: dict[str, _Group] = {}
        self._changed = clock.monotonic()  # the last change of the scope
        self._started = False
        self._starting: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        scope.listen(self._follow_scope)

    @property
    def synced(self) -> bool:
        """Report whether what was needed when the last change began is in the table."""
        groups = self._groups.values()
        return self._started and all(any(source.synced for source in group.sources) for group in groups)

    @property
    def trusted(self) -> bool:
        """Report whether everything that is needed now is in the table, and is followed without a gap."""
        return all(self._has(name, interests) for name, interests in self._scope.groups().items())

    def _has(self, name: str, interests: Interests) -> bool:
        source = group.newest if (group := self._groups.get(name)) is not None else None
        return (
            source is not None and source.trusted and (interests <= source.interests or source.interests >= EVERYTHING)
        )

    @property
    def last_update(self) -> float:
        """Time (monotonic) of the last proof that every source is up to date."""
        newest = (group.newest for group in self._groups.values())
        return min((source.last_update for source in newest if source is not None), default=self._clock.monotonic())

    @property
    def last_listed(self) -> float:
        """Time (monotonic) of the last proof that the watcher's LIST makes progress."""
        return max((source.last_listed for source in self._sources()), default=float("-inf"))

    @property
    def interests(self) -> Interests:
        """The interests of the synced sources."""
        return frozenset(one for source in self._sources() if source.synced for one in source.interests)

    async def start(self) -> None:
        self._started = True
        self._update(shrink=True)
        await asyncio.gather(*self._starting)

    async def stop(self) -> None:
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, *self._ending, return_exceptions=True)
        for source in self._sources():
            await source.stop()

    def tick(self) -> None:
        """Drop what is not needed any more after a while. Raises VersionsWentBack when etcd was restored."""
        for source in self._sources():
            source.tick()
        if self._clock.monotonic() - self._changed >= SHRINK_SECONDS:
            self._update(shrink=True)

    def _sources(self) -> Iterable[ShardedSource]:
        return [source for group in self._groups.values() for source in group.sources]

    def _follow_scope(self) -> None:
        self._changed = self._clock.monotonic()
        if self._started:
            self._update(shrink=False)

    def _update(self, *, shrink: bool) -> None:
        wanted = self._scope.groups()
        for name in {*wanted, *self._groups}:
            self._retarget(name, wanted.get(name, frozenset()), shrink=shrink)
        self._cover()

    def _retarget(self, name: str, interests: Interests, *, shrink: bool) -> None:
        group = self._groups.get(name) or _Group()
        held = frozenset[Interest]() if group.newest is None else group.newest.interests
        if interests == held or (interests < held and not shrink):
            return
        if not interests:
            del self._groups[name]
            self._retire(*group.sources)
            self._prune()
            return
        if group.successor is not None:
            return  # until it is synced: see `_replace`
        group.successor = ShardedSource(
            self._bus, self._api, self._decoder, self._clock, lambda: self._replace(group), interests, name
        )
        self._groups[name] = group
        _run(group.successor.start(), self._starting)

    def _replace(self, group: _Group) -> None:
        """Let the successor, which is synced, take the place of the source that served so far."""
        if group.successor is not None and group.successor.synced:
            if group.serving is not None:
                self._retire(group.serving)
            group.serving, group.successor = group.successor, None
            self._prune()
            self._update(shrink=False)
        self._on_synced()

    def _prune(self) -> None:
        """Drop objects that no source covers any more: they still exist, so no listener is called."""
        self._cover()
        for obj in [obj for obj in self._decoder.table if not self._decoder.covers(obj)]:
            self._decoder.table.evict(obj)

    def _cover(self) -> None:
        """Have the table take what is needed, and what is still followed."""
        followed = (source.interests for source in self._sources())
        self._decoder.interests = frozenset(chain(*self._scope.groups().values(), *followed))

    def _retire(self, *sources: ShardedSource) -> None:
        for source in sources:
            _run(source.stop(), self._ending)


def _run(coroutine: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
    """Run it in the background, as one of the tasks while it lasts."""
    task = asyncio.get_running_loop().create_task(coroutine)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
