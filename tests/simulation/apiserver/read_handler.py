"""GET, LIST in pages or streamed, and WATCH."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec

from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import Page, WatchEvent
from flotilla_common.kube.watch import bookmark
from tests.simulation.apiserver import errors, list_selectors
from tests.simulation.apiserver.event_log import EventLog
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.store import ObjectKey, Store, Stored
from tests.simulation.apiserver.wire import Delivery

BOOKMARK_SECONDS = 60.0
"""Fake seconds between bookmarks of a quiet watch."""

FAREWELL_SECONDS = 2.0
"""Fake seconds before the end of a watch at which it gets a bookmark, if nothing else came."""

FUTURE_SECONDS = 3.0
"""Fake seconds for which the apiserver waits for a version that it has not reached."""

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class _Rest(msgspec.Struct, frozen=True):
    """The rest of a LIST after some pages: objects as they were when it began."""

    revision: int
    items: list[Stored]


class ReadHandler:
    """Reads of one apiserver."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pages: dict[str, _Rest] = {}
        self.compacted = 0

    def get(self, kind: Kind, namespace: str, name: str) -> Stored:
        """Return the object. Raises ApiError 404."""
        stored = self._store.table(kind.resource).objects.get((namespace, name))
        if stored is None:
            raise errors.not_found(kind.where, name)
        return stored

    def list(self, kind: Kind, namespace: str, labels: str, fields: str, limit: int, token: str) -> Page:
        """One page. ApiError 410 when the LIST began before what is kept."""
        rest = self._pages.get(token) if token else self._selected(kind, namespace, labels, fields)
        if rest is None or (token and rest.revision < self.compacted):
            raise errors.expired(_TOO_OLD)
        page, left = (rest.items[:limit], rest.items[limit:]) if limit else (rest.items, [])
        following = ""
        if left:
            following = f"{rest.revision}.{len(left)}.{len(self._pages)}"
            self._pages[following] = _Rest(rest.revision, left)
        return Page([_item(kind, stored) for stored in page], str(rest.revision), following)

    def _selected(self, kind: Kind, namespace: str, labels: str, fields: str) -> _Rest:
        found = [stored for _, stored in self._store.table(kind.resource).in_order(namespace)]
        tests = [list_selectors.label_test(labels)] if labels else []
        tests += [list_selectors.field_test(fields, kind.fields)] if fields else []
        for test in tests:
            found = [stored for stored in found if test(stored.document)]
        return _Rest(self._store.revision, found)

    async def reached(self, version: str) -> int:
        """Return the version as a number, once the apiserver has reached it. Raises ApiError 500, 504."""
        if not version.isdecimal():
            told = (
                f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
            )
            raise errors.refusal(500, "", told)
        revision = int(version)
        if revision > self._store.revision:
            await self._clock.sleep(FUTURE_SECONDS)
        if revision > self._store.revision:
            told = f"Too large resource version: {revision}, current: {self._store.revision}"
            cause: Json = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            raise errors.refusal(504, "Timeout", f"Timeout: {told}", {"causes": [cause], "retryAfterSeconds": 1}, 1)
        return revision

    def watch(self, kind: Kind, namespace: str, name: str, revision: int, timeout: float) -> AsyncGenerator[Delivery]:
        """Yield all events after the revision, with bookmarks.

        Ends at its timeout, or when the watcher is so slow that its next event is compacted. Raises ApiError 410 once
        it is accepted, as the real one does.
        """
        return self._follow(self._store.table(kind.resource).log, (namespace, name), revision, timeout)

    async def stream(self, kind: Kind, namespace: str, name: str, timeout: float) -> AsyncGenerator[Delivery]:
        """Yield the present objects, what has changed meanwhile, the bookmark that ends the list, then all events.

        A watcher that is so slow that its next event is compacted finds that the list ends without its bookmark.
        """
        log, began, revision = self._store.table(kind.resource).log, self._clock.monotonic(), self._store.revision
        for stored in [stored for _, stored in self._store.table(kind.resource).in_order(namespace)]:
            if name in ("", stored.document["metadata"]["name"]):
                event = WatchEvent("ADDED", msgspec.Raw(stored.raw))
                yield Delivery(event=event, revision=revision, at=began)
        async for delivery in self._follow(log, (namespace, name), revision, timeout, list_ends=True):
            yield delivery

    async def _follow(
        self, log: EventLog, wanted: ObjectKey, revision: int, timeout: float, *, list_ends: bool = False
    ) -> AsyncGenerator[Delivery]:
        if revision < log.floor:
            raise errors.expired(f"too old resource version: {revision} ({log.floor})")
        ends = self._clock.monotonic() + timeout
        position = log.position(revision)
        next_bookmark = _next_bookmark(self._clock.monotonic(), ends)
        while True:
            events = log.read(position)
            if events is None:
                return
            position += len(events)
            for event in events:
                if wanted[0] in ("", event.namespace) and wanted[1] in ("", event.name):
                    yield Delivery(event=event.watch, revision=event.revision, at=event.at)
            if events:
                continue
            now = self._clock.monotonic()
            if list_ends:
                list_ends = False
                yield self._bookmark(now, ends_list=True)
                continue
            if now >= next_bookmark:
                next_bookmark = _next_bookmark(now, ends)
                yield self._bookmark(now)
                continue  # that may have taken its time
            if now >= ends:
                return
            await _changed_within(log.changed, min(next_bookmark, ends) - now)

    def _bookmark(self, now: float, *, ends_list: bool = False) -> Delivery:
        revision = self._store.revision
        event = WatchEvent("BOOKMARK", bookmark(str(revision), ends_list=ends_list))
        return Delivery(event=event, revision=revision, at=now)


def _next_bookmark(now: float, ends: float) -> float:
    farewell = ends - FAREWELL_SECONDS
    return min(now + BOOKMARK_SECONDS, farewell) if farewell > now else now + BOOKMARK_SECONDS


async def _changed_within(changed: Callable[[], Awaitable[None]], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await changed()


def _item(kind: Kind, stored: Stored) -> msgspec.Raw:
    """Return an object as an item of a LIST: items of built-in kinds have no kind."""
    return msgspec.Raw(b"{" + stored.raw[len(kind.prefix) :] if kind.typed else stored.raw)
