"""Watches workloads of kinds that administrators name in a ConfigMap (persistentpodstate.md §7, workloadspread.md §3).

These kinds are not known in advance, so they are not on the bus: each is looked up in the apiserver's discovery, then
listed and watched directly, while the ConfigMap names it. Administrators have to grant the permission; where it is
missing, that is reported, and everything else continues. Where only `get` is granted, the objects that matter are read
every few seconds.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import structlog

from flotilla_common.api.core import ConfigMap
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.keystate import Key
from flotilla_common.kube.discovery import Served, served
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.direct_source import DirectSource
from flotilla_common.mirror.table import Table

LOOK_SECONDS = 2.0
"""Interval between two comparisons with the ConfigMap, and between two attempts after errors."""

READ_SECONDS = 10.0
"""Interval between two reads of objects that may not be listed."""

T = TypeVar("T", bound=Object)
W = TypeVar("W")

GroupKind = tuple[str, str]
Listener = Callable[[Resource, T | None, T | None], None]


class Named(Protocol):
    """A kind that administrators name."""

    @property
    def group(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def kind(self) -> str: ...


def configured(configuration: ConfigMap | None, read: Callable[[Mapping[str, str]], list[W]]) -> list[W]:
    """Return the kinds that `read` finds in the ConfigMap; none if it is unreadable, which admission reports."""
    try:
        return read({} if configuration is None else configuration.data)
    except ValueError:
        return []


class Followed(DirectSource, Generic[T]):
    """The objects of one kind, and the reason why they are not available yet."""

    def __init__(self, api: Api, kind: Served, shape: type[T], clock: Clock, on_synced: Callable[[], None]) -> None:
        self.served = kind
        self.table = Table[T]()
        self.refusal = ""
        self._unread = ""  # the reason why objects cannot be read one by one
        self._api = api
        self._objects = ObjectDecoder(kind.resource, shape, self.table)
        self._read_at: float | None = None
        super().__init__(api, self._objects, clock, on_synced)

    @property
    def known(self) -> bool:
        """Return whether the objects that matter are in the table."""
        return self.synced or self._read_at is not None

    @property
    def unknown(self) -> str:
        """Return why the objects are not known yet."""
        why = "; ".join(filter(None, (self.refusal, self._unread)))
        return why or f"{self.served.resource.kind} of {self.served.resource.group or 'core'} is being listed"

    def state(self, trouble: str) -> None:
        """Store why the apiserver refuses to list and watch; empty when it succeeds again."""
        if trouble and trouble != self.refusal:
            structlog.get_logger().warning("cannot follow a workload", kind=self.served.resource.kind, why=trouble)
        self.refusal = trouble

    async def read(self, keys: Collection[Key]) -> None:
        """Read these objects one by one, every few seconds, while they cannot be listed and watched."""
        now = self._clock.monotonic()
        if not self.refusal or (self._read_at is not None and now < self._read_at + READ_SECONDS):
            return
        try:
            for key in keys:
                await self._read(key)
        except (ApiError, Unreachable) as error:
            self._unread = str(error)
            return
        first, self._read_at = self._read_at is None, now
        if first:
            self._on_synced()

    async def _read(self, key: Key) -> None:
        body = await found_or_none(self._api.get(self.served.resource, *key))
        held = self.table.get(*key)
        if body is not None:
            self._objects.take(body)
        elif held is not None:
            self.table.remove(*key, held.metadata.uid)


class CustomKinds(Generic[T]):
    """The kinds that are followed, and their objects."""

    def __init__(
        self,
        api: Callable[[], Api],
        shape: type[T],
        clock: Clock,
        *,
        wanted: Callable[[], Collection[Named]],
        needed: Callable[[GroupKind], Collection[Key]],
        listener: Listener[T],
        changed: Callable[[GroupKind], None],
    ) -> None:
        """Prepare to follow kinds.

        `shape` is the type that their objects are decoded to. `wanted` returns the kinds that the ConfigMap names now,
        `needed` the objects of a kind that matter. `listener` is called for each change of an object, `changed` for a
        kind that becomes known or unknown.
        """
        self._api = api
        self._shape = shape
        self._clock = clock
        self._wanted = wanted
        self._needed = needed
        self._listener = listener
        self._changed = changed
        self._followed: dict[GroupKind, Followed[T]] = {}
        self._unknown: dict[GroupKind, str] = {}  # kinds that discovery does not find, and why

    def tables(self) -> Iterator[tuple[Resource, Table[T]]]:
        """Yield the kinds whose objects are all known."""
        return ((one.served.resource, one.table) for one in self._followed.values() if one.known)

    def find(self, kind: GroupKind) -> tuple[Served, Table[T]] | None:
        """Return the objects of one kind; None while they are not known."""
        followed = self._followed.get(kind)
        return (followed.served, followed.table) if followed is not None and followed.known else None

    def trouble(self, kind: GroupKind) -> str:
        """Return why the objects of the kind are not known; empty if they are."""
        followed = self._followed.get(kind)
        if followed is None:
            name = f"{kind[1]} of {kind[0] or 'core'}"
            return self._unknown.get(kind) or f"no ConfigMap names {name}, or it is being looked up"
        return "" if followed.known else followed.unknown

    async def run(self) -> None:
        """Follow the wanted kinds until cancelled."""
        try:
            while True:
                wanted = {(one.group, one.kind): one for one in self._wanted()}
                await self._drop([kind for kind, one in self._followed.items() if not _is_still(one, wanted.get(kind))])
                await self._take_up(wanted)
                for kind, followed in list(self._followed.items()):
                    await followed.tick()
                    await followed.read(self._needed(kind))
                await self._clock.sleep(LOOK_SECONDS)
        finally:
            for followed in self._followed.values():
                await followed.stop()

    async def _drop(self, kinds: Collection[GroupKind]) -> None:
        for kind in kinds:
            await self._followed.pop(kind).stop()
            self._changed(kind)

    async def _take_up(self, wanted: Mapping[GroupKind, Named]) -> None:
        self._unknown = {kind: why for kind, why in self._unknown.items() if kind in wanted}
        for kind in wanted.keys() - self._followed.keys():
            try:
                one = wanted[kind]
                found = await served(self._api(), one.group, one.version, one.kind)
            except (ApiError, Unreachable, ValueError) as error:
                self._cannot_find(kind, str(error))
            else:
                await self._follow(kind, found)

    async def _follow(self, kind: GroupKind, found: Served) -> None:
        followed = Followed[T](self._api(), found, self._shape, self._clock, lambda: self._changed(kind))
        followed.table.listen(lambda old, new: self._listener(found.resource, old, new))
        self._followed[kind] = followed
        self._unknown.pop(kind, None)
        await followed.start()

    def _cannot_find(self, kind: GroupKind, why: str) -> None:
        if self._unknown.get(kind) != why:
            structlog.get_logger().warning("cannot find a kind of workloads", kind=kind[1], group=kind[0], why=why)
            self._unknown[kind] = why
            self._changed(kind)


def _is_still(followed: Followed[Any], wanted: Named | None) -> bool:
    """Return whether the kind is still named, in the version that is followed."""
    return wanted is not None and wanted.version == followed.served.resource.version
