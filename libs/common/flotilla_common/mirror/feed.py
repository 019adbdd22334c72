"""Feeds one resource's table: from the bus while it can be trusted, from the apiserver directly otherwise.

A dead bus does not make the system blind (architecture.md §3). The bus is trusted while its follow is complete and the
watcher's marker keeps coming. Without such proof for `fallback_after` seconds the direct source starts; when the proof
is back it stops. Tables only move forward, so both may run at once.
"""

from collections.abc import Callable
from typing import Any

import structlog

from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.bus_source import BusSource
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.direct_source import DirectSource


class Feed:
    """The feed of one table. Objects of a single `namespace` are private: they never go over the bus."""

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
    ) -> None:
        self.namespace = namespace
        self.optional = False
        """The cluster may not serve the kind, now or later, so readiness does not wait for it."""
        self._api = api
        self._clock = clock
        self._decoder = decoder
        self._fallback_after = fallback_after
        self._on_synced = on_synced
        self._bus = None if namespace else BusSource(bus, api, decoder, clock, on_synced)
        self._source = self._bus or self._direct_source()
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
        trusted = self._bus.synced and self._bus.healthy
        if trusted:
            self._trusted = self._bus.last_update
        silence = self._clock.monotonic() - self._trusted
        if silence < self._fallback_after:
            if self.direct and trusted:
                self._log.info("the bus is back, reading from it again")
                direct, self._source = self._source, self._bus
                await direct.stop()
        elif not self.direct:
            self._log.warning("no data from the bus, watching the apiserver directly", seconds=round(silence, 1))
            self._source = self._direct_source()
            await self._source.start()

    def _direct_source(self) -> DirectSource:
        return DirectSource(self._api, self._decoder, self._clock, self._on_synced, self.namespace)
