"""The LIST and WATCH loop of the watcher, and of a service that has lost the bus.

A `Sink` receives the objects. The list is streamed at the start of the watch if the apiserver can do that, and read in
pages otherwise (docs/adr/0036). The loop resumes a broken watch from the last resourceVersion that the sink has
handled, starts over with a LIST when that history is gone (410) or not there yet, and treats a resource that does not
exist yet as a state to wait in.
"""

import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Literal, Protocol

import msgspec
import structlog

from flotilla_common.api.meta import Model
from flotilla_common.api.resources import Resource
from flotilla_common.api.uidranges import EVERY_UID, UidRange
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import PAGE_SIZE, UNSUPPORTED, Api, ApiError, Unreachable, WatchEvent, pages
from flotilla_common.kube.watch import ends_list

NAMED_PAGE_SIZE = 50
"""Page size for objects of one name: they are alike, and if one is a megabyte, all may be."""

WATCH_SECONDS = 300.0
"""Duration of a watch, limited as clients of the apiserver do to spread over its replicas."""

STREAM_SECONDS = 3600.0
"""Limit of a watch that begins with a list, so that no list is cut: then it would begin again, without end.

The list of 100,000 pods takes a minute. After it the watch goes on for WATCH_SECONDS only.
"""

STREAM_TRIES = 2
"""Streams that may break before the end of the list, before pages are read instead.

A proxy may limit responses, and the cache of the apiserver may be stuck behind etcd, which pages are not.
"""

PAGES_SECONDS = 3600.0
"""Seconds for which lists are read in pages, after which the apiserver may have been upgraded."""

FIRST_BACKOFF, MOST_BACKOFF = 0.1, 5.0
"""Seconds between attempts; a restarted apiserver is found within five."""

CALM_SECONDS = 1.0
"""Duration of a watch after which the backoff is reset."""


TOO_LARGE = "Too large resource version"
"""The apiserver's error for a version that it has not reached: it lags, or etcd was restored. A LIST shows which."""


class HeadMeta(Model, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0  # of its spec; 0 if the apiserver keeps none


class Head(Model, frozen=True):
    """The identity of an object."""

    metadata: HeadMeta = HeadMeta()


decode_head = msgspec.json.Decoder(Head).decode


Way = Literal["streamed", "pages"]
"""The way in which a list is read."""


class Sink(Protocol):
    """The receiver of one resource's objects, in order. Exceptions other than the apiserver's end the loop."""

    async def listing(self, way: Way) -> None:
        """Begin a LIST; the objects until `complete` replace everything."""
        ...

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        """Handle one object of the LIST; the same object again if it has changed meanwhile."""
        ...

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        """Take an object out of the LIST: it was deleted meanwhile."""
        ...

    async def complete(self, version: str) -> None:
        """End the LIST, which is complete as of `version`."""
        ...

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        """Handle an ADDED, MODIFIED or DELETED event."""
        ...

    async def progress(self, version: str) -> None:
        """Note that everything up to `version` has been handled (a bookmark)."""
        ...

    def state(self, trouble: str) -> None:
        """Note why the loop cannot work; empty when it works."""
        ...


class Reflector:
    """The loop for one resource. `run` returns only by an exception of the sink or by cancellation."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        sink: Sink,
        clock: Clock,
        namespace: str = "",
        name: str = "",
        uids: UidRange = EVERY_UID,
    ) -> None:
        """Watch all objects, those of one `namespace`, of one `name` in all namespaces, or of one range of uids."""
        self._api = api
        self._resource = resource
        self._sink = sink
        self._clock = clock
        self._namespace = namespace
        self._fields = f"metadata.name={name}" if name else ""
        self._uids = uids
        self._foreign = False  # the apiserver has sent objects out of the range
        self._page_size = NAMED_PAGE_SIZE if name else PAGE_SIZE
        self._version = ""
        self._backoff = FIRST_BACKOFF
        self._broken_streams = 0
        self._pages_until = 0.0  # monotonic
        self._log = structlog.get_logger(resource=resource.id)

    async def run(self) -> None:
        while True:
            started = self._clock.monotonic()
            try:
                await self._follow()
                pause = 0.0
            except ApiError as error:
                pause = self._refused(error)
            except Unreachable as error:
                pause = self._backoff
                self._sink.state(f"the apiserver is unreachable: {error}")
            if self._clock.monotonic() - started >= CALM_SECONDS:
                self._backoff = FIRST_BACKOFF
            else:
                pause = max(pause, self._backoff)
                self._backoff = min(self._backoff * 2, MOST_BACKOFF)
            await self._clock.sleep(pause)

    def _refused(self, error: ApiError) -> float:
        """Handle an error response; return how long to wait."""
        if error.code == 410 or TOO_LARGE in error.message:
            self._log.info("history is gone, listing again", version=self._version, why=error.message)
            self._version = ""
            return 0.0
        if error.code == 404:
            self._version = ""
            self._sink.state(f"waiting for CRD {self._resource.plural}.{self._resource.group}")
        else:
            self._sink.state(f"the apiserver refuses {self._resource.plural}: {error.message}")
        return max(error.retry_after, self._backoff)

    async def _follow(self) -> None:
        """Follow the resource until a watch ends, beginning with a list if there is no version to resume from."""
        if self._version:
            await self._watch()
        elif self._clock.monotonic() < self._pages_until or not await self._stream():
            await self._list()
            await self._watch()

    async def _stream(self) -> bool:
        """List and watch in one request; return False if the apiserver cannot do that."""
        stream = self._api.stream(
            self._resource,
            namespace=self._namespace,
            field_selector=self._fields,
            timeout=STREAM_SECONDS,
            shard_selector=self._uids.selector,
        )
        async with aclosing(stream):
            try:
                if not await self._list_from(stream):
                    self._avoid_streams("it sends no end of the list")
                    return False
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and error.code in UNSUPPORTED:
                    self._avoid_streams(error.message)
                    return False
                self._count_broken(error)
                raise
            self._broken_streams = 0
            await self._take_events(stream, WATCH_SECONDS)
            return True

    async def _list_from(self, stream: AsyncGenerator[WatchEvent]) -> bool:
        """Take the list with which a stream begins; return False if it is no such stream."""
        await self._sink.listing("streamed")
        async for event in stream:
            head = decode_head(event.object).metadata
            if ends_list(event):
                await self._complete(head.resource_version)
                return True
            if event.type == "BOOKMARK":
                return False
            if not self._covers(head):
                continue
            if event.type == "DELETED":
                await self._sink.unlisted(head, event.object)
            else:
                await self._sink.listed(head, event.object)
        raise Unreachable("the watch ended within the list")

    def _count_broken(self, error: ApiError | Unreachable) -> None:
        """Count a stream that broke within the list, unless the apiserver was away or refused it for good reason."""
        if isinstance(error, Unreachable):
            self._broken_streams += error.sent
        else:
            self._broken_streams += error.code >= 500 or error.code == 410
        if self._broken_streams >= STREAM_TRIES:
            self._broken_streams = 0
            self._avoid_streams(str(error))

    def _avoid_streams(self, why: str) -> None:
        self._pages_until = self._clock.monotonic() + PAGES_SECONDS
        self._log.info("no streaming list, reading pages", why=why)

    async def _list(self) -> None:
        await self._sink.listing("pages")
        version = ""
        async for page in pages(
            self._api,
            self._resource,
            self._namespace,
            field_selector=self._fields,
            limit=self._page_size,
            shard_selector=self._uids.selector,
        ):
            for item in page.items:
                head = decode_head(item).metadata
                if self._covers(head):
                    await self._sink.listed(head, item)
            version = page.resource_version
        await self._complete(version)

    def _covers(self, head: HeadMeta) -> bool:
        """Report whether an object is in the range.

        The answers to watches do not show whether the apiserver has applied the selector. With several apiservers, one
        may have shards and another not.
        """
        covered = self._uids.covers(head.uid)
        if not covered and not self._foreign:
            self._foreign = True
            self._log.warning("the apiserver sends objects of other shards, too; they are skipped")
        return covered

    async def _complete(self, version: str) -> None:
        await self._sink.complete(version)
        self._version = version
        self._sink.state("")

    async def _watch(self) -> None:
        watch = self._api.watch(
            self._resource,
            self._version,
            namespace=self._namespace,
            field_selector=self._fields,
            timeout=WATCH_SECONDS,
            shard_selector=self._uids.selector,
        )
        async with aclosing(watch):  # when the sink fails, so that no connection is left open
            await self._take_events(watch)

    async def _take_events(self, events: AsyncIterator[WatchEvent], seconds: float = math.inf) -> None:
        """Take the events until they end, or until one comes after these seconds: there are bookmarks."""
        ends = self._clock.monotonic() + seconds
        async for event in events:
            head = decode_head(event.object).metadata
            if event.type == "BOOKMARK":
                await self._sink.progress(head.resource_version)
            elif self._covers(head):
                await self._sink.event(event.type, head, event.object)
            self._version = head.resource_version
            self._sink.state("")
            if self._clock.monotonic() >= ends:
                return
