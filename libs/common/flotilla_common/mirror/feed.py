"""Feeds one resource's table: from the bus or the apiserver, or only certain names of it.

A table may hold some objects only, those that its scope covers: what a service needs, and no more.

A dead bus does not make the system blind (architecture.md §3). The bus is trusted while its follow is complete and the
watcher's marker keeps coming. Without such proof for `fallback_after` seconds the direct source starts; when the proof
is back it stops. Tables only move forward, so both may run at once.

Where only certain names matter there is a LIST and WATCH per name, in all namespaces. That is for objects that must not
go over the bus, and of which a service should hold only the needed ones. Readers of the table ask for names when they
need them, and list at any time the names that they still need; other names are dropped. The apiserver keeps an index of
such watches for Secrets and ConfigMaps, so each is very cheap.
"""

from collections.abc import Callable, Collection
from typing import Any

import msgspec
import structlog

from flotilla_common.bus.affiliation import Interest
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.bus_source import BusSource
from flotilla_common.mirror.bus_sources import BusSources
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.direct_source import DirectSource
from flotilla_common.mirror.scope import Interests, Scope

LISTING_SHARE = 10
"""While the watcher's LIST makes progress, the bus is waited for this many times longer.

The LIST of a service would take as long, and would slow down the watcher's.
"""


class Feed:
    """The feed of one table. Objects of a single `namespace` are private: they never go over the bus.

    Those of a resource that is not `published` do not, either.
    """

    def __init__(
        self,
        *,
        api: Api,
        bus: Bus,
        clock: Clock,
        decoder: ObjectDecoder[Any],
        fallback_after: float,
        on_synced: Callable[[], None],
        namespace: str = "",
        published: bool = True,
        scope: Scope | None = None,
    ) -> None:
        self.namespace = namespace
        self.optional = False
        """The cluster may not serve the kind, now or later, so readiness does not wait for it."""
        self._api = api
        self._clock = clock
        self._decoder = decoder
        self._fallback_after = fallback_after
        self._on_synced = on_synced
        self._scope = scope
        self._bus = None if namespace or not published else self._bus_source(bus)
        self._listed: Interests = frozenset()  # what the direct source began with
        self._rescoped = False  # more is needed than that
        self._source = self._bus or self._direct_source()
        if scope is not None:
            scope.listen(self._follow_scope)
        self._trusted = clock.monotonic()  # the last proof that the bus is up to date
        self._log = structlog.get_logger(resource=decoder.resource.id)

    @property
    def direct(self) -> bool:
        """Report whether the apiserver is watched directly."""
        return self._source is not self._bus

    @property
    def fallen_back(self) -> bool:
        """Report whether the apiserver is watched because the bus cannot be trusted."""
        return self._bus is not None and self.direct

    @property
    def synced(self) -> bool:
        """Report whether a source has delivered everything that existed."""
        return self._source.synced

    @property
    def trouble(self) -> str:
        """The error that ended the direct watch, until it works again; empty otherwise."""
        return self._source.trouble if isinstance(self._source, DirectSource) else ""

    @property
    def lag(self) -> float:
        """Seconds since the last proof that the table is up to date; 0 for an optional kind that is not synced."""
        if self.optional and not self.synced:
            return 0.0
        return self._clock.monotonic() - self._source.last_update

    async def start(self) -> None:
        self._trusted = self._clock.monotonic()
        await self._source.start()

    async def stop(self) -> None:
        if self._bus is not None:
            await self._bus.stop()
        if self.direct:
            await self._source.stop()

    async def tick(self) -> None:
        """Start or stop the direct source, depending on the state of the bus. Call it every second or so.

        Raises VersionsWentBack when the bus shows that etcd was restored.
        """
        if isinstance(self._source, DirectSource):
            await self._source.tick()
        if self._bus is None:
            return
        self._bus.tick()
        if trusted := self._bus.trusted:
            self._trusted = self._bus.last_update
        silence = self._clock.monotonic() - self._trusted
        if silence < self._fallback_after:
            if self.direct and trusted:
                self._log.info("the bus is back, reading from it again")
                direct, self._source = self._source, self._bus
                await direct.stop()
        elif not self.direct and not self._is_filled(silence):
            self._log.warning("no data from the bus, watching the apiserver directly", seconds=round(silence, 1))
            self._source = self._direct_source()
            await self._source.start()
        elif self.direct and self._rescoped:
            await self._source.stop()
            self._source = self._direct_source()
            await self._source.start()

    def _is_filled(self, silence: float) -> bool:
        """Report whether the watcher is publishing a LIST, which is soon complete."""
        assert self._bus is not None
        listed = self._clock.monotonic() - self._bus.last_listed
        return listed < self._fallback_after and silence < self._fallback_after * LISTING_SHARE

    def covers(self, namespace: str) -> bool:
        """Report whether the table holds all objects of the namespace."""
        if self._scope is None:
            return self.synced
        interests = self._bus.interests if isinstance(self._bus, BusSources) and not self.direct else self._listed
        return self.synced and bool(interests & {Interest(), Interest(namespace=namespace)})

    def _follow_scope(self) -> None:
        self._rescoped = True

    def _bus_source(self, bus: Bus) -> BusSource | BusSources:
        if self._scope is None:
            return BusSource(bus, self._api, self._decoder, self._clock, self._on_synced)
        return BusSources(bus, self._api, self._decoder, self._clock, self._scope, self._on_synced)

    def _direct_source(self) -> DirectSource:
        self._listed, self._rescoped = self._decoder.interests or frozenset(), False
        return DirectSource(self._api, self._decoder, self._clock, self._on_synced, self.namespace)


class Followed(msgspec.Struct, frozen=True):
    """The state of a name."""

    synced: bool = False  # the table holds all objects of this name
    trouble: str = ""  # why it does not


class Reader(msgspec.Struct, frozen=True):
    """A reader of the table."""

    wanted: Callable[[], Collection[str]]
    """Returns the names that matter now."""
    changed: Callable[[str], None]
    """Called with a name when it becomes known, or cannot be read."""


class NamedFeed:
    """The feed of a table of certain names. To a mirror it is a feed like others."""

    namespace = ""
    optional = False
    direct = True
    synced = True
    """Always True: readers wait for single names, and are called when one becomes known."""

    def __init__(self, *, api: Api, clock: Clock, decoder: ObjectDecoder[Any]) -> None:
        self._api = api
        self._clock = clock
        self._decoder = decoder
        self._readers: list[Reader] = []
        self._sources: dict[str, _Source] = {}

    def join(self, reader: Reader) -> None:
        """Add a reader of the table."""
        self._readers.append(reader)

    def follow(self, name: str) -> Followed:
        """Return the state of the name, which is followed from now on until no reader needs it."""
        source = self._sources.get(name)
        if source is None:
            source = _Source(self._api, self._decoder, self._clock, name, self._changed)
            self._sources[name] = source
            source.begin()
        return Followed(source.synced, "" if source.synced else source.refusal)

    def follows(self, name: str) -> bool:
        """Report whether the name is followed."""
        return name in self._sources

    @property
    def trouble(self) -> str:
        """The error that ended a watch, until it works again; empty otherwise."""
        return next((source.trouble for source in self._sources.values() if source.trouble), "")

    @property
    def lag(self) -> float:
        """Seconds since the last proof that every followed name is up to date."""
        now = self._clock.monotonic()
        return max((now - source.last_update for source in self._sources.values()), default=0.0)

    async def start(self) -> None:
        """Do nothing: sources start when their names are asked for."""

    async def stop(self) -> None:
        for source in self._sources.values():
            await source.stop()

    async def tick(self) -> None:
        """Drop names that no reader needs, and restart watches that ended. Call it every second or so."""
        wanted = {name for reader in self._readers for name in reader.wanted()}
        for name in self._sources.keys() - wanted:
            await self._sources.pop(name).stop()
            self._decoder.table.evict_named(name)
        for source in self._sources.values():
            await source.tick()

    def _changed(self, name: str) -> None:
        for reader in self._readers:
            reader.changed(name)


class _Source(DirectSource):
    """The objects of one name, and the reason why they are not known."""

    def __init__(
        self, api: Api, decoder: ObjectDecoder[Any], clock: Clock, name: str, changed: Callable[[str], None]
    ) -> None:
        super().__init__(api, decoder, clock, lambda: changed(name), name=name)
        self._name = name
        self._changed = changed
        self.refusal = ""

    def state(self, trouble: str) -> None:
        """Store why the apiserver refuses; empty when it responds again."""
        news, self.refusal = trouble != self.refusal, trouble
        if news and trouble:
            resource = self._decoder.resource.plural
            structlog.get_logger().warning("cannot follow a name", resource=resource, name=self._name, why=trouble)
        if news and not self.synced:
            self._changed(self._name)
