"""Noticing changes: a watch per resource that only says that something happened, never what."""

from collections.abc import Callable

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable

_RETRY_SECONDS = 2.0
_log = structlog.get_logger()


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_decoder = msgspec.json.Decoder(_Object)


class Follower:
    """Calls `notify` whenever an object of the resource with an interesting name may have changed."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        resource: Resource,
        notify: Callable[[], None],
        *,
        namespace: str = "",
        interesting: Callable[[str], bool],
    ) -> None:
        self.api = api
        self.clock = clock
        self.resource = resource
        self.notify = notify
        self.namespace = namespace
        self.interesting = interesting
        self._version = ""

    async def run(self) -> None:
        """Follow until cancelled, through ends, errors and lost history."""
        while True:
            try:
                if not self._version:
                    self._version = (await self.api.list(self.resource, self.namespace, limit=1)).resource_version
                    self.notify()  # whatever happened while nobody watched
                await self._follow()
            except (ApiError, Unreachable) as failure:
                self._version = ""
                _log.info("watch interrupted", resource=self.resource.id, error=str(failure))
                await self.clock.sleep(_RETRY_SECONDS)

    async def _follow(self) -> None:
        async for event in self.api.watch(self.resource, self._version, namespace=self.namespace):
            metadata = _decoder.decode(event.object).metadata
            self._version = metadata.resource_version
            if event.type != "BOOKMARK" and self.interesting(metadata.name):
                self.notify()
