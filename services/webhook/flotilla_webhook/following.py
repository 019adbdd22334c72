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
    """Calls `notify` whenever an object of the resource with an interesting name may have changed."""

    api: Api
    clock: Clock
    resource: Resource
    notify: Callable[[], None]
    interesting: Callable[[str], bool]
    namespace: str = ""

    async def run(self) -> None:
        """Follow until cancelled, through ends, errors and lost history."""
        version = ""
        while True:
            try:
                if not version:
                    version = (await self.api.list(self.resource, self.namespace, limit=1)).resource_version
                    self.notify()  # whatever happened while nobody watched
                async for event in self.api.watch(self.resource, version, namespace=self.namespace):
                    metadata = metadata_of(event.object)
                    version = metadata.resource_version
                    if event.type != "BOOKMARK" and self.interesting(metadata.name):
                        self.notify()
            except (ApiError, Unreachable) as failure:
                version = ""
                _log.info("watch interrupted", resource=self.resource.id, error=str(failure))
                await self.clock.sleep(_RETRY_SECONDS)
