"""The apiserver as the rest of Flotilla sees it: raw bytes in and out, two exceptions.

`kube.client` is the real one (aiohttp); the simulator brings its own.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Protocol

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.resources import JOB, Resource

__all__ = ["Api", "ApiError", "Lists", "Page", "Unreachable", "WatchEvent"]

PAGE_SIZE = 500
"""Objects per page: about 2 MB of pods, so neither side holds a large cluster in one buffer."""

ORPHANING = frozenset({JOB})
"""Kinds whose dependents are orphaned by default, as before there was a garbage collector."""


UNSUPPORTED = frozenset({400, 422})
"""Codes with which an apiserver refuses a streaming list that it does not support."""


class Page(msgspec.Struct, frozen=True):
    """One page of a LIST: raw objects, the LIST's resourceVersion, the token of the next page (empty at the end)."""

    items: list[msgspec.Raw]
    resource_version: str
    next_token: str = ""
    sharded: bool = False  # the apiserver has applied the shard selector


class WatchEvent(msgspec.Struct, frozen=True):
    """One watch event: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the raw object (a Status for ERROR)."""

    type: str
    object: msgspec.Raw


class Lists(Protocol):
    """The one operation that `pages` needs."""

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        token: str = "",
        metadata_only: bool = False,
        shard_selector: str = "",
    ) -> Page: ...


class Api(Protocol):
    """The operations of the apiserver that services use. All methods raise ApiError and Unreachable."""

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes: ...

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        token: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
        shard_selector: str = "",
    ) -> Page:
        """Return one page. With `metadata_only` the objects have no other members.

        Without a resource_version the read is consistent (a quorum read). An apiserver that has no shards ignores the
        `shard_selector` (`UidRange.selector`); `Page.sharded` shows that.
        """
        ...

    def watch(
        self,
        resource: Resource,
        resource_version: str,
        *,
        namespace: str = "",
        field_selector: str = "",
        timeout: float = 300,
        shard_selector: str = "",
    ) -> AsyncGenerator[WatchEvent]:
        """Yield events after `resource_version`, until the server ends the watch.

        The first is a bookmark of that version, once the server has accepted, which distinguishes a quiet watch from
        none. Nothing shows whether the `shard_selector` was applied. Raises ApiError with code 410 when the history
        from that version on is gone.
        """
        ...

    def stream(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        field_selector: str = "",
        timeout: float = 300,
        shard_selector: str = "",
    ) -> AsyncGenerator[WatchEvent]:
        """Yield all objects as ADDED events, then a bookmark (`kube.watch.ends_list`), then what `watch` does.

        This is a LIST and a watch in one request, consistent as a quorum read at its start. Objects that change
        meanwhile may have a MODIFIED or DELETED event before the bookmark; together the events up to it are the state
        at its version. Raises ApiError with a code of UNSUPPORTED where the apiserver has no streaming lists. One that
        ignores the request sends a bookmark of another kind, or none.
        """
        ...

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes: ...

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        *,
        subresource: str = "",
        params: Mapping[str, str] | None = None,
    ) -> bytes: ...

    async def replace(
        self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = ""
    ) -> bytes: ...

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str = "", resource_version: str = ""
    ) -> bytes: ...

    async def raw(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
        """Send any other request (discovery, version)."""
        ...

    async def close(self) -> None: ...


def delete_options(resource: Resource, uid: str = "", resource_version: str = "") -> Json:
    """Return DeleteOptions with these preconditions, unless empty; dependents are deleted, too."""
    given = {"uid": uid, "resourceVersion": resource_version}
    preconditions = {key: value for key, value in given.items() if value}
    options: Json = {"preconditions": preconditions} if preconditions else {}
    return options | ({"propagationPolicy": "Background"} if resource in ORPHANING else {})


async def pages(
    api: Lists,
    resource: Resource,
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    limit: int = PAGE_SIZE,
    metadata_only: bool = False,
    shard_selector: str = "",
) -> AsyncIterator[Page]:
    """Yield all pages of one consistent LIST. Raises ApiError and Unreachable."""
    token = ""
    while True:
        page = await api.list(
            resource,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            token=token,
            metadata_only=metadata_only,
            shard_selector=shard_selector,
        )
        yield page
        token = page.next_token
        if not token:
            return
