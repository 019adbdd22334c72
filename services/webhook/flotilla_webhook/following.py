"""Noticing changes: a watch per resource that only says that something happened, never what."""

from collections.abc import Callable

import msgspec
import structlog

from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable

_RETRY_SECONDS = 2.0
_log = structlog.get_logger()


class Follower(msgspec.Struct, frozen=True):
    """Calls `notify` whenever an object of the resource with an interesting name may have changed. With `only` no other
    name is asked for, and no right to others is needed."""

    api: Api
    clock: Clock
    resource: Resource
    notify: Callable[[], None]
    interesting: Callable[[str], bool]
    namespace: str = ""
    only: str = ""

    async def run(self) -> None:
        """Follow until cancelled, through ends, errors and lost history."""
        version, fields = "", f"metadata.name={self.only}" if self.only else ""
        while True:
            try:
                if not version:
                    page = await self.api.list(self.resource, self.namespace, field_selector=fields, limit=1)
                    version = page.resource_version
                    self.notify()  # whatever happened while nobody watched
                events = self.api.watch(self.resource, version, namespace=self.namespace, field_selector=fields)
                async for event in events:
                    metadata = metadata_of(event.object)
                    version = metadata.resource_version
                    if event.type != "BOOKMARK" and self.interesting(metadata.name):
                        self.notify()
            except (ApiError, Unreachable) as failure:
                version = ""
                _log.info("watch interrupted", resource=self.resource.id, error=str(failure))
                await self.clock.sleep(_RETRY_SECONDS)
