"""The mirror: typed tables of the cluster's objects, fed by watches and by our own writes (architecture.md §4).

A service adds its tables, runs the mirror, waits until it is synced, and before it writes for a shard calls `resync`.
Responses to its writes go through `written` and `deleted`; after a write of unknown outcome `read` and `read_owned`
look it up. All of these end at the same intake, so a controller always sees at least its own writes.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from prometheus_client import Gauge

from flotilla_common.api.meta import Object, metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import buckets_of
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock
from flotilla_common.health import Health
from flotilla_common.kube.interface import Api, ApiError, pages
from flotilla_common.kube.reflector import HeadMeta
from flotilla_common.mirror.decoder import ObjectDecoder, OnUndecodable, Undecodable
from flotilla_common.mirror.feed import Feed, NamedFeed, Reader
from flotilla_common.mirror.scope import Needs, Scope
from flotilla_common.mirror.table import Indexer, Table, version_number

OBJECTS = Gauge("flotilla_mirror_objects", "Objects in the mirror by resource.", ["resource"])
LAG = Gauge("flotilla_mirror_lag_seconds", "Seconds since the last proof that it is up to date.", ["resource"])
UNDECODABLE = Gauge("flotilla_mirror_undecodable_objects", "Objects that cannot be decoded now.", ["resource"])
DIRECT = Gauge("flotilla_mirror_direct", "1 while a resource is watched directly, without the bus.", ["resource"])

T = TypeVar("T", bound=Object)

TEND_SECONDS = 1.0
"""Interval at which the feeds check the state of the bus."""


class Mirror:
    """The tables of one service."""

    def __init__(
        self, *, api: Api, bus: Bus, clock: Clock, health: Health | None = None, fallback_after: float = 30.0
    ) -> None:
        self._api = api
        self._bus = bus
        self._clock = clock
        self._health = health
        self._fallback_after = fallback_after
        self._decoders: dict[Resource, ObjectDecoder[Any]] = {}
        self._feeds: dict[Resource, Feed | NamedFeed] = {}
        self._named: dict[Resource, NamedFeed] = {}  # the feeds that are read by name
        self._once: set[Resource] = set()  # optional kinds that are required until they are synced once
        self._come: dict[Resource, list[Callable[[], None]]] = {}  # to be called when the kind becomes available
        self._there: set[Resource] = set()  # the available ones of these, after the last call
        self._scopes: dict[Resource, Scope] = {}  # what is needed of resources whose subjects say whose objects are
        self._on_synced: list[Callable[[], None]] = []
        self._all_synced = asyncio.Event()

    def add(
        self,
        resource: Resource,
        kind: type[T],
        indexes: Mapping[str, Indexer[T]] | None = None,
        namespace: str = "",
        *,
        named: bool = False,
        direct: bool = False,
        needs: Needs | None = None,
    ) -> Table[T]:
        """Return the table of the resource's objects, decoded as `kind`, shared by all callers. Call it before `run`.

        Objects of a single `namespace`, or only those with names that are asked for (`named`), are listed and watched
        directly: they must not go over the bus. Nor do those of a resource that no watcher publishes (`direct`). Of
        pods it holds what the callers need; without `needs` all.
        """
        decoder = self._decoders.get(resource)
        if decoder is None:
            decoder = self._decoders[resource] = ObjectDecoder(resource, kind, Table[T]())
            if named:
                feed = self._named[resource] = NamedFeed(api=self._api, clock=self._clock, decoder=decoder)
            else:
                feed = self._feed(decoder, namespace, direct=direct)
            self._feeds[resource] = feed
            _show(decoder, feed)
        elif decoder.kind is not kind or (self.namespace_of(resource), resource in self._named) != (namespace, named):
            raise RuntimeError(f"{resource.plural} are mirrored already, as another type or from another namespace")
        if resource in self._scopes:
            self._scopes[resource].add(needs)
        for name, indexer in (indexes or {}).items():
            decoder.table.add_index(name, indexer)
        return decoder.table

    def _feed(self, decoder: ObjectDecoder[Any], namespace: str, *, direct: bool) -> Feed:
        if subjects.affiliated(decoder.resource):
            self._scopes[decoder.resource] = Scope()
        return Feed(
            api=self._api,
            bus=self._bus,
            clock=self._clock,
            decoder=decoder,
            fallback_after=self._fallback_after,
            on_synced=self._check_synced,
            namespace=namespace,
            published=not direct,
            scope=self._scopes.get(decoder.resource),
        )

    def named(self, resource: Resource, reader: Reader) -> NamedFeed:
        """Return the feed to ask for names, of a resource that was added as `named`. Raises KeyError for another."""
        feed = self._named[resource]
        feed.join(reader)
        return feed

    async def run(self) -> None:
        """Feed the tables until cancelled. Raises VersionsWentBack when etcd was restored."""
        try:
            for feed in self._feeds.values():
                await feed.start()
            while True:
                for feed in self._feeds.values():
                    await feed.tick()
                self._check_synced()
                await self._clock.sleep(TEND_SECONDS)
        finally:
            for feed in self._feeds.values():
                await feed.stop()

    def may_be_missing(self, resource: Resource, *, now: bool) -> None:
        """Mark a kind as optional, which the cluster may serve or not, and start or stop serving.

        If it is not missing `now`, it is required until it is synced once, so that nothing is planned without its
        objects.
        """
        self._feeds[resource].optional = now
        if not now:
            self._once.add(resource)

    def must_be_there(self, resource: Resource) -> None:
        """Mark a kind as required, overriding `may_be_missing`."""
        self._feeds[resource].optional = False
        self._once.discard(resource)

    def waits_for(self, resource: Resource) -> bool:
        """Report whether the kind is required."""
        return not self._feeds[resource].optional

    def on_served(self, resource: Resource, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a missing kind becomes available."""
        self._come.setdefault(resource, []).append(listener)

    def hold(self, shards: Collection[int], count: int) -> None:
        """Need the objects of owners in these of `count` shards only; with one shard standbys need all of them."""
        for scope in self._scopes.values():
            scope.hold(buckets_of(shards if count > 1 else (0,), count))

    def covers(self, resource: Resource, namespace: str) -> bool:
        """Report whether the table holds all objects of the namespace, which someone needs (`Needs.near`)."""
        feed = self._feeds.get(resource)
        return not isinstance(feed, Feed) or feed.covers(namespace)

    def on_synced(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever tables may cover more than before."""
        self._on_synced.append(listener)

    def serves(self, resource: Resource) -> bool:
        """Report whether the table holds the kind's objects; False while the cluster does not serve it."""
        return resource in self._feeds and self._feeds[resource].synced

    async def synced(self, timeout: float | None = None) -> None:
        """Wait until every table holds what existed when its source began. Raises TimeoutError."""
        async with asyncio.timeout(timeout):
            await self._all_synced.wait()

    @property
    def resources(self) -> Sequence[Resource]:
        """The resources that have tables."""
        return list(self._decoders)

    def namespace_of(self, resource: Resource) -> str:
        """Return the one namespace whose objects are mirrored; empty for all."""
        return self._feeds[resource].namespace if resource in self._feeds else ""

    def lag(self, resource: Resource) -> float:
        """Return the seconds since the last proof that the table is up to date."""
        return self._feeds[resource].lag

    def is_direct(self, resource: Resource) -> bool:
        """Report whether the apiserver is watched instead of the bus; False for resources that are never on the bus."""
        feed = self._feeds[resource]
        return isinstance(feed, Feed) and feed.fallen_back

    def undecodable(self, resource: Resource) -> Sequence[Undecodable]:
        """Return the objects that could not be decoded, and are therefore in no table."""
        return list(self._decoders[resource].undecodable.values())

    def is_undecodable(self, resource: Resource, uid: str) -> bool:
        """Report whether the newest version of the object could not be decoded; its table has an older one at best."""
        return uid in self._decoders[resource].undecodable

    def holds(self, resource: Resource, key: tuple[str, str], uid: str) -> bool:
        """Report whether the object with this uid exists under its namespace and name, even if undecodable."""
        held = self._decoders[resource].table.get(*key)
        return (held is not None and held.metadata.uid == uid) or self.is_undecodable(resource, uid)

    def on_undecodable(self, resource: Resource, listener: OnUndecodable) -> None:
        """Call `listener` for every object that cannot be decoded, once per version."""
        self._decoders[resource].listen(listener)

    async def resync(self, resources: Sequence[Resource]) -> None:
        """Run one consistent LIST of each resource: afterwards the tables are at least as new as this call.

        Raises ApiError or Unreachable when a LIST fails.
        """
        await asyncio.gather(*(self.read_owned(resource, self.namespace_of(resource)) for resource in resources))

    async def read(self, resource: Resource, namespace: str, name: str) -> object | None:
        """Read one object directly; return None when it does not exist (or cannot be decoded).

        Objects for which there is no table are ignored. Raises ApiError or Unreachable.
        """
        decoder = self._intake_of(resource, name)
        if decoder is None:
            return None
        held, as_of = decoder.table.get(namespace, name), decoder.table.inferred
        try:
            body = await self._api.get(resource, namespace, name)
        except ApiError as error:
            if error.code != 404:
                raise
            if held is not None:  # another object that took the name meanwhile has another uid
                self.deleted(resource, namespace, name, held.metadata.uid)
            return None
        return decoder.take(body, as_of)

    async def read_owned(self, resource: Resource, namespace: str = "", *, name: str = "") -> None:
        """Run one consistent LIST of a namespace (empty: all), or of one `name`, and apply it.

        Each page is applied as it comes; at the end objects that the LIST lacks are removed. Raises ApiError or
        Unreachable when it fails, VersionsWentBack when etcd was restored.
        """
        decoder = self._decoders[resource]
        known, version = decoder.table.newest, 0
        listed, others = set[str](), dict[str, int]()  # others exist, but are not needed: versions by uid
        fields = f"metadata.name={name}" if name else ""
        try:
            async for page in pages(self._api, resource, namespace, field_selector=fields):
                version = version_number(page.resource_version)
                needed, left_out = decoder.split(page.items)
                listed |= decoder.table.merge(needed, version, known=known)
                others |= left_out
        except ApiError as error:
            if error.code == 404 and self._feeds[resource].optional:
                return  # the kind is gone; its objects are dropped when it comes back without them
            raise
        aside = {*decoder.undecodable, *others}  # they exist, although we cannot decode them or do not need them

        def scope(obj: Object) -> bool:
            there = obj.metadata
            return there.uid not in aside and namespace in ("", there.namespace) and name in ("", there.name)

        decoder.table.drop_unlisted(listed, version, scope)
        for uid, at in others.items():
            decoder.leave_out(uid, at)

    def written(self, resource: Resource, body: bytes) -> object | None:
        """Apply the object that a write returned, and return it decoded; None if there is no table for it."""
        decoder = self._intake_of(resource, metadata_of(body).name if resource in self._named else "")
        return decoder.take(body) if decoder is not None else None

    def deleted(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        """Remove an object that is surely gone."""
        decoder = self._decoders.get(resource)
        if decoder is not None:
            decoder.drop(HeadMeta(namespace=namespace, name=name, uid=uid))

    def _intake_of(self, resource: Resource, name: str) -> ObjectDecoder[Any] | None:
        """Return the intake for objects of the resource; None for a name that a table by names does not follow."""
        named = self._named.get(resource)
        return None if named is not None and not named.follows(name) else self._decoders.get(resource)

    def _check_synced(self) -> None:
        for resource in [one for one in self._once if self._feeds[one].synced]:
            self._once.remove(resource)
            self._feeds[resource].optional = True
        self._notify_served()
        for listener in self._on_synced:
            listener()
        feeds = ((resource, feed) for resource, feed in self._feeds.items() if not feed.optional)
        waiting = [resource.plural for resource, feed in feeds if not feed.synced]
        if not waiting:
            self._all_synced.set()
        self._report(waiting)

    def _notify_served(self) -> None:
        there = {resource for resource in self._come if self._feeds[resource].synced}
        came, self._there = there - self._there, there
        for resource in came:
            for listener in self._come[resource]:
                listener()

    def _report(self, waiting: Sequence[str]) -> None:
        if self._health is not None:
            self._health.ready("mirror", not waiting, f"waiting for {', '.join(waiting)}" if waiting else "")
            broken = [f"{resource.plural}: {feed.trouble}" for resource, feed in self._feeds.items() if feed.trouble]
            self._health.alive("mirror", not broken, ", ".join(broken))


def _show(decoder: ObjectDecoder[Any], feed: Feed | NamedFeed) -> None:
    """Make the metrics of one resource follow its table; they are computed on request."""
    resource = decoder.resource.id
    OBJECTS.labels(resource).set_function(lambda: len(decoder.table))
    LAG.labels(resource).set_function(lambda: feed.lag)
    UNDECODABLE.labels(resource).set_function(lambda: len(decoder.undecodable))
    DIRECT.labels(resource).set_function(lambda: feed.direct)
