"""One resource's way into its table: the bus while it can be trusted, the apiserver directly while it cannot.

A dead bus is not a blind system (DESIGN §3). The bus is trusted as long as its follow is whole and the watcher's
marker keeps coming. Without such proof for `fallback_after` seconds the direct source starts; when the proof is back it
stops.
"""

from collections.abc import Callable
from typing import Any, Protocol

import structlog

from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.bus_source import BusSource
from flotilla_common.mirror.direct_source import DirectSource
from flotilla_common.mirror.intake import Intake
from flotilla_common.mirror.source import Source


class Feed(Protocol):
    """What keeps one table up to date."""

    @property
    def direct(self) -> bool:
        """The apiserver is watched directly."""
        ...

    @property
    def synced(self) -> bool:
        """A source has delivered everything that existed."""
        ...

    @property
    def lag(self) -> float:
        """Seconds since the last proof that the table is up to date."""
        ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def tend(self) -> None:
        """Look after the sources. To be called every second or so."""
        ...


class PrivateFeed:
    """Objects of one namespace that never go over the bus: the apiserver is all there is."""

    def __init__(
        self, *, api: Api, clock: Clock, intake: Intake[Any], namespace: str, on_synced: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._source = DirectSource(api, intake, clock, on_synced, namespace)

    @property
    def direct(self) -> bool:
        return True

    @property
    def synced(self) -> bool:
        return self._source.synced

    @property
    def lag(self) -> float:
        return self._clock.monotonic() - self._source.heard

    async def start(self) -> None:
        await self._source.start()

    async def stop(self) -> None:
        await self._source.stop()

    async def tend(self) -> None:
        """The source looks after itself."""


class BusFeed:
    """Objects from the bus, and directly while it is silent."""

    def __init__(
        self,
        *,
        api: Api,
        bus: Bus,
        clock: Clock,
        intake: Intake[Any],
        fallback_after: float,
        on_synced: Callable[[], None],
    ) -> None:
        self._api = api
        self._clock = clock
        self._intake = intake
        self._fallback_after = fallback_after
        self._on_synced = on_synced
        self._bus = BusSource(bus, api, intake, clock, on_synced)
        self._direct: DirectSource | None = None
        self._trusted = clock.monotonic()  # the last proof that the bus is up to date
        self._log = structlog.get_logger(resource=intake.resource.id)

    @property
    def direct(self) -> bool:
        return self._direct is not None

    @property
    def synced(self) -> bool:
        return self._source().synced

    @property
    def lag(self) -> float:
        return self._clock.monotonic() - self._source().heard

    async def start(self) -> None:
        self._trusted = self._clock.monotonic()
        await self._bus.start()

    async def stop(self) -> None:
        await self._bus.stop()
        if self._direct is not None:
            await self._direct.stop()

    async def tend(self) -> None:
        """Start or stop the direct source, as the state of the bus demands."""
        if self._bus.synced and self._bus.healthy:
            self._trusted = self._bus.heard
        silence = self._clock.monotonic() - self._trusted
        if silence < self._fallback_after:
            if self._direct is not None and self._bus.synced and self._bus.healthy:
                self._log.info("the bus is back, it feeds the mirror again")
                direct, self._direct = self._direct, None
                await direct.stop()
        elif self._direct is None:
            self._log.warning("no word from the bus, watching the apiserver directly", seconds=round(silence, 1))
            self._direct = DirectSource(self._api, self._intake, self._clock, self._on_synced)
            await self._direct.start()

    def _source(self) -> Source:
        return self._bus if self._direct is None else self._direct
