"""Objects from a LIST and WATCH of our own: while the bus cannot be trusted, or where it must not carry them."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from flotilla_common.bus import subjects
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.kube.reflector import HeadMeta, Reflector
from flotilla_common.mirror.intake import Intake
from flotilla_common.mirror.table import version_number


class DirectSource:
    """Lists and watches by itself."""

    def __init__(
        self, api: Api, intake: Intake[Any], clock: Clock, on_synced: Callable[[], None], namespace: str = ""
    ) -> None:
        self._intake = intake
        self._clock = clock
        self._on_synced = on_synced
        self._listed: set[str] = set()
        self.synced = False
        """Everything that existed when the source began has been taken in."""
        self.heard = clock.monotonic()
        """When (monotonic) the source last had proof that it is up to date."""
        self._reflector = Reflector(api, intake.resource, self, clock, namespace)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._reflector.run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def listing(self) -> None:
        self._listed.clear()

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._listed.add(head.uid)
        self._intake.take(item)

    async def complete(self, version: str) -> None:
        """What the LIST lacks and is not newer is gone."""
        self._intake.table.replace((), version_number(version), lambda obj: obj.metadata.uid not in self._listed)
        self._intake.forget_unlisted(self._listed, version_number(version))
        self._listed.clear()
        self.heard = self._clock.monotonic()
        if not self.synced:
            self.synced = True
            self._on_synced()

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        self.heard = self._clock.monotonic()
        if kind == subjects.DELETED:
            self._intake.drop(head)
        else:
            self._intake.take(item)

    async def progress(self, version: str) -> None:
        self.heard = self._clock.monotonic()

    def state(self, trouble: str) -> None:
        """Trouble shows in what was heard last."""
