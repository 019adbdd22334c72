"""One resource's way into its table where only objects of certain names matter: a LIST and WATCH for each name, in all
namespaces.

It is for objects that must not go over the bus, and of which a service is to hold no more than it works with. Whoever
reads the table asks for names when it needs them, and says at any time which ones it still needs; the others are let
go. The apiserver keeps an index of such watches for Secrets and ConfigMaps, so that each costs it next to nothing.
"""

from collections.abc import Callable, Collection
from typing import Any

import msgspec
import structlog

from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.direct_source import DirectSource
from flotilla_common.mirror.intake import Intake


class Followed(msgspec.Struct, frozen=True):
    """How far a name is known."""

    synced: bool = False  # the table holds all objects of this name
    trouble: str = ""  # why it does not


class Reader(msgspec.Struct, frozen=True):
    """Somebody who reads the table."""

    wanted: Callable[[], Collection[str]]
    """The names that matter now."""
    changed: Callable[[str], None]
    """Is told of a name when that is known, or cannot be read."""


class NamedFeed:
    """Keeps a table of chosen names up to date. To a mirror it is a feed like others."""

    namespace = ""
    optional = False
    direct = True
    synced = True
    """Nobody waits for all names: who asks for one is told when it is known."""

    def __init__(self, *, api: Api, clock: Clock, intake: Intake[Any]) -> None:
        self._api = api
        self._clock = clock
        self._intake = intake
        self._readers: list[Reader] = []
        self._sources: dict[str, _Source] = {}

    def join(self, reader: Reader) -> None:
        """Somebody reads the table."""
        self._readers.append(reader)

    def follow(self, name: str) -> Followed:
        """How far the name is known; it is followed from now on, until no reader wants it."""
        source = self._sources.get(name)
        if source is None:
            source = _Source(self._api, self._intake, self._clock, name, self._changed)
            self._sources[name] = source
            source.begin()
        return Followed(source.synced, "" if source.synced else source.refusal)

    def follows(self, name: str) -> bool:
        """The name was asked for, and somebody wants it still."""
        return name in self._sources

    @property
    def trouble(self) -> str:
        """What ended a watch, until it works again; empty while nothing is wrong."""
        return next((source.trouble for source in self._sources.values() if source.trouble), "")

    @property
    def lag(self) -> float:
        """Seconds since the last proof that everything followed is up to date."""
        now = self._clock.monotonic()
        return max((now - source.heard for source in self._sources.values()), default=0.0)

    async def start(self) -> None:
        """Sources start when their names are asked for."""

    async def stop(self) -> None:
        for source in self._sources.values():
            await source.stop()

    async def tend(self) -> None:
        """Let go what nobody wants, and begin anew what has ended. To be called every second or so."""
        wanted = {name for reader in self._readers for name in reader.wanted()}
        for name in self._sources.keys() - wanted:
            await self._sources.pop(name).stop()
            self._intake.table.let_go(name)
        for source in self._sources.values():
            await source.tend()

    def _changed(self, name: str) -> None:
        for reader in self._readers:
            reader.changed(name)


class _Source(DirectSource):
    """The objects of one name, and why they are not known."""

    def __init__(self, api: Api, intake: Intake[Any], clock: Clock, name: str, changed: Callable[[str], None]) -> None:
        super().__init__(api, intake, clock, lambda: changed(name), name=name)
        self._name = name
        self._changed = changed
        self.refusal = ""

    def state(self, trouble: str) -> None:
        """The apiserver refuses, or answers again."""
        news, self.refusal = trouble != self.refusal, trouble
        if news and trouble:
            resource = self._intake.resource.plural
            structlog.get_logger().warning("cannot follow a name", resource=resource, name=self._name, why=trouble)
        if news and not self.synced:
            self._changed(self._name)
