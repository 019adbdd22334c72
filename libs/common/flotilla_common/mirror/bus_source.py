"""Objects from the watcher's stream.

Objects carry the epoch of the LIST that they belong to. When the marker says that an epoch is complete up to a version,
objects that are not newer and were not published in that epoch do not exist any more. So a late joiner, a watcher that
started over and a wiped bus all end in the same table.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, Follow, Message
from flotilla_common.bus.markers import Awaited
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.kube.reflector import HeadMeta, decode_head
from flotilla_common.mirror.intake import Intake
from flotilla_common.mirror.table import version_number, version_of

FETCH_SECONDS = 1.0
"""Between attempts to fetch an object that was too large for the bus."""


class BusSource:
    """Follows the stream of one resource."""

    def __init__(self, bus: Bus, api: Api, intake: Intake[Any], clock: Clock, on_synced: Callable[[], None]) -> None:
        self._bus = bus
        self._api = api
        self._intake = intake
        self._clock = clock
        self._on_synced = on_synced
        self._marker_subject = subjects.kube_marker(intake.resource)
        self._epoch = ""  # the epoch that was completed last
        self._seen: dict[str, set[str]] = {}  # uids by epoch that is not complete yet
        self.synced = False
        """Everything that existed when the source began has been taken in."""
        self._awaited = Awaited()
        self.heard = clock.monotonic()
        """When (monotonic) the source last had proof that it is up to date."""
        self._follow: Follow | None = None
        self._fetches: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger(resource=intake.resource.id)

    @property
    def healthy(self) -> bool:
        """The follow is whole, as far as it knows."""
        return self._follow is not None and self._follow.healthy

    async def start(self) -> None:
        stream = subjects.kube_stream(self._intake.resource).name
        self._follow = await self._bus.follow(stream, ">", self._receive, self._reset)

    async def stop(self) -> None:
        if self._follow is not None:
            await self._follow.stop()
        for task in self._fetches:
            task.cancel()
        await asyncio.gather(*self._fetches, return_exceptions=True)

    def _reset(self) -> None:
        """The stream is read again from its start, or it is another one. Nothing in the table is doubted yet."""
        self._epoch = ""
        self._seen.clear()
        self.synced = False
        self._awaited.forget()

    def _receive(self, message: Message) -> None:
        if message.subject == self._marker_subject:
            self.heard = self._clock.monotonic()
            self._awaited.note(message)
        else:
            self._take(message)
        if (marker := self._awaited.due(message)) is not None:
            if marker.epoch != self._epoch:
                self._complete(marker)
            if not self.synced:
                self.synced = True
                self._on_synced()

    def _take(self, message: Message) -> None:
        headers = message.headers
        epoch, uid = headers.get(subjects.EPOCH, ""), headers.get(subjects.UID, "")
        if headers.get(subjects.OP) == subjects.DELETED:
            if message.data:
                self._intake.drop(decode_head(message.data).metadata)
            return
        if epoch != self._epoch:
            self._seen.setdefault(epoch, set()).add(uid)
        held = self._intake.table.by_uid(uid)
        if held is not None and version_of(held) >= version_number(headers.get(subjects.RV, "")) > 0:
            return  # our own write comes back, or an old message: not worth decoding
        if subjects.OVERSIZE in headers:
            self._fetch(message)
        else:
            self._intake.take(message.data)

    def _complete(self, marker: subjects.Marker) -> None:
        seen, version = self._seen.get(marker.epoch, set[str]()), version_number(marker.rv)
        table = self._intake.table
        gone = [obj for obj in table if obj.metadata.uid not in seen and version_of(obj) <= version]
        for obj in gone:
            table.presume_absent(obj, version)
        self._intake.forget_unlisted(seen, version)
        self._log.info("synced from the bus", epoch=marker.epoch, objects=len(table), gone=len(gone))
        self._epoch = marker.epoch
        self._seen.clear()

    def _fetch(self, message: Message) -> None:
        """The message says only that the object changed; its name is in the body's head."""
        head = decode_head(message.data).metadata
        task = asyncio.get_running_loop().create_task(self._fetch_until_known(head))
        self._fetches.add(task)
        task.add_done_callback(self._fetches.discard)

    async def _fetch_until_known(self, head: HeadMeta) -> None:
        while True:
            try:
                self._intake.take(await self._api.get(self._intake.resource, head.namespace, head.name))
            except ApiError as error:
                if error.code == 404:
                    return
                self._log.warning("cannot fetch", name=head.name, error=error.message)
            except Unreachable as error:
                self._log.warning("cannot fetch", name=head.name, error=str(error))
            else:
                return
            await self._clock.sleep(FETCH_SECONDS)
