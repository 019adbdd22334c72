"""Lists and watches objects directly: while the bus cannot be trusted, or where it must not carry them."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from flotilla_common.api.meta import Object
from flotilla_common.bus import subjects
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.kube.reflector import HeadMeta, Reflector, Way
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.table import version_number


class DirectSource:
    """A LIST and WATCH of one resource into its table."""

    def __init__(
        self,
        api: Api,
        decoder: ObjectDecoder[Any],
        clock: Clock,
        on_synced: Callable[[], None],
        namespace: str = "",
        name: str = "",
    ) -> None:
        """Watch all objects, those of one `namespace`, or those of one `name`."""
        self._decoder = decoder
        self._only = name
        self._clock = clock
        self._on_synced = on_synced
        self._listed: set[str] = set()
        self._as_of = -1  # the LIST under way is at least as new as this version
        self.synced = False
        """True once everything that existed when the source began is in the table."""
        self.last_update = clock.monotonic()
        """Time (monotonic) of the last proof that the source is up to date."""
        self.trouble = ""
        """The error that ended the watch, until it works again."""
        self._reflector = Reflector(api, decoder.resource, self, clock, namespace, name)
        self._task: asyncio.Task[None] | None = None
        self._log = structlog.get_logger(resource=decoder.resource.id)

    async def start(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start in the background."""
        self._task = asyncio.get_running_loop().create_task(self._reflector.run())

    async def tick(self) -> None:
        """Restart the watch if a defect has ended it. Call it every second or so."""
        if self._task is not None and self._task.done():
            error = self._task.exception()
            self.trouble = f"{type(error).__name__}: {error}"
            self._log.error("the watch failed, restarting it", exc_info=error)
            await self.start()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def listing(self, way: Way) -> None:
        self._listed.clear()
        self._as_of = self._decoder.table.inferred

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._listed.add(head.uid)
        self._take(head, item, self._as_of)

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._decoder.drop(head)

    async def complete(self, version: str) -> None:
        """Remove the objects that the LIST lacks, unless they are newer."""
        self._decoder.table.replace((), version_number(version), self._is_gone)
        self._decoder.forget_unlisted(self._listed, version_number(version), self._only)
        self._listed.clear()
        self._note_contact()
        if not self.synced:
            self.synced = True
            self._on_synced()

    def _is_gone(self, obj: Object) -> bool:
        """Report whether an object that should be in the LIST is not."""
        return obj.metadata.uid not in self._listed and self._only in ("", obj.metadata.name)

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        if kind == subjects.DELETED:
            self._decoder.drop(head)
        else:
            self._take(head, item)
        self._note_contact()

    def _take(self, head: HeadMeta, item: msgspec.Raw, as_of: int = -1) -> None:
        if self._decoder.covers_raw(item):
            self._decoder.take(item, as_of, covered=True)
        else:
            self._decoder.leave_out(head.uid, version_number(head.resource_version))

    async def progress(self, version: str) -> None:
        self._note_contact()

    def _note_contact(self) -> None:
        self.last_update = self._clock.monotonic()
        self.trouble = ""

    def state(self, trouble: str) -> None:
        """Ignore trouble, which `heard` shows, too."""
