"""Serves the page that Prometheus scrapes: all metrics of the objects of one moment.

The objects are taken from the mirror in one step, between two changes. Their text is written in a thread, so that the
mirror continues meanwhile; concurrent scrapes are answered one after the other.
"""

import asyncio
from collections.abc import Sequence

from aiohttp import web
from prometheus_client import Histogram

from flotilla_common.clock import Clock
from flotilla_common.mirror.mirror import Mirror
from flotilla_statemetrics.exposition import CONTENT_TYPE, Snapshot, text_of
from flotilla_statemetrics.families import AnyKind

SECONDS = Histogram("flotilla_statemetrics_scrape_seconds", "Time to write the metrics of all objects.")


class Page:
    """Answers scrapes from the tables of a mirror."""

    def __init__(self, mirror: Mirror, kinds: Sequence[AnyKind], clock: Clock) -> None:
        self._mirror = mirror
        self._tables = [(kind, mirror.add(kind.resource, kind.type)) for kind in kinds]
        self._clock = clock
        self._one = asyncio.Lock()
        self.synced = False
        """True once the tables hold all existing objects."""

    def snapshot(self) -> Snapshot:
        """Return the objects of this moment, without those whose newest version cannot be decoded."""
        mirror = self._mirror
        return [
            (kind, [one for one in table if not mirror.is_undecodable(kind.resource, one.metadata.uid)])
            for kind, table in self._tables
        ]

    async def answer(self, _: web.Request) -> web.Response:
        """Return the page; 503 until the tables are complete, so that no series seems to have ended."""
        if not self.synced:
            return web.Response(text="not all objects have been read yet\n", status=503)
        async with self._one:
            began = self._clock.monotonic()
            body = await asyncio.to_thread(text_of, self.snapshot())
            SECONDS.observe(self._clock.monotonic() - began)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
