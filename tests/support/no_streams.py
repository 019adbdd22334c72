"""An apiserver without streaming lists, for fakes of it."""

from collections.abc import AsyncGenerator

from flotilla_common.kube.interface import ApiError, WatchEvent


class NoStreams:
    """Refuses streams as an apiserver does whose feature gate WatchList is off."""

    async def stream(self, *_: object, **__: object) -> AsyncGenerator[WatchEvent]:
        raise ApiError(422, "Invalid", "sendInitialEvents is forbidden for watch")
        yield
