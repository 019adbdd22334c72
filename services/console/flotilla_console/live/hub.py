"""The shown pages (views), and the streams of the browsers that show them.

A browser has one stream for all its tabs, and names the pages that they show. A loop renders each of these pages, at
most four times a second and only when something visible changed. All readers of the same page with the same rights
share its view, so the cost of an update does not grow with their number.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from flotilla_common.clock import Clock, Entropy
from flotilla_console.access.identity import Identity
from flotilla_console.live.events import Beat, Failed, Hello, encoded, numbered
from flotilla_console.live.outbox import Outbox
from flotilla_console.live.view import View, ViewKey
from flotilla_console.model.sight import Sight
from flotilla_console.web.pages import Address

TICK_SECONDS = 0.25
"""The shortest time between two renderings of a view."""
PREPARED_SECONDS = 5.0
"""The same for pages that read something first."""
BEAT_SECONDS = 5.0
RESUME_SECONDS = 60.0
"""Seconds for which a stream without a reader is kept."""
MAX_VIEWS = 16
"""Limit of the pages that one browser shows at a time."""
MAX_STREAMS = 500
MAX_STREAMS_PER_USER = 20

_log = structlog.get_logger()


class Finder(Protocol):
    """Finds pages by their paths."""

    def find(self, target: str) -> Address | None:
        """Return the page of a path with its query."""
        ...


class TooManyStreams(Exception):
    """The user, or all of them, have as many streams as are allowed."""


@dataclass(eq=False)
class Stream:
    """The stream of a browser."""

    id: str
    identity: Identity
    sight: Sight
    paths: tuple[str, ...] = ()
    """The pages that the browser shows."""
    known: dict[ViewKey, int] = field(default_factory=dict[ViewKey, int])
    """The views of these pages, and the version of each that was put into the outbox; 0: none."""
    outbox: Outbox = field(default_factory=Outbox)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    reader: object = None
    """The request that reads the stream now; a new one ends the one before."""
    left_at: float = 0.0

    def put(self, event: bytes) -> None:
        """Add an event for the reader."""
        self.outbox.append(event)
        self.news.set()


class Hub:
    """All streams and their views."""

    def __init__(self, pages: Finder, clock: Clock, entropy: Entropy) -> None:
        self._pages, self._clock, self._entropy = pages, clock, entropy
        self._streams: dict[str, Stream] = {}
        self._views: dict[ViewKey, View] = {}
        self._rendered: dict[ViewKey, float] = {}
        self._preparing: dict[ViewKey, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Render what changed, until cancelled."""
        beat = self._clock.monotonic()
        try:
            while True:
                await self.render_all()
                if self._clock.monotonic() >= beat:
                    beat = self._clock.monotonic() + BEAT_SECONDS
                    self.beat()
                await self._clock.sleep(TICK_SECONDS)
        finally:
            for task in self._preparing.values():
                task.cancel()

    def open(self, identity: Identity, sight: Sight) -> Stream:
        """Return a new stream. Raises TooManyStreams."""
        self._make_room(
            [one for one in self._streams.values() if one.identity.user == identity.user], MAX_STREAMS_PER_USER
        )
        self._make_room(list(self._streams.values()), MAX_STREAMS)
        stream = Stream(self._entropy.uuid(), identity, sight, left_at=self._clock.monotonic())
        self._streams[stream.id] = stream
        stream.put(encoded("hello", Hello(stream.id)))
        stream.put(encoded("beat", self._beat(sight)))
        return stream

    def _make_room(self, streams: Sequence[Stream], most: int) -> None:
        """Drop the stream that was left first if there are too many: each document that is loaded leaves one."""
        if len(streams) < most:
            return
        left = min((one for one in streams if one.reader is None), key=lambda one: one.left_at, default=None)
        if left is None:
            raise TooManyStreams
        self.close(left)

    def find(self, name: str, identity: Identity) -> Stream | None:
        """Return the stream of this name if it belongs to the identity."""
        stream = self._streams.get(name)
        return None if stream is None or stream.identity.user != identity.user else stream

    def close(self, stream: Stream) -> None:
        """Drop a stream and the views that only it has."""
        self._streams.pop(stream.id, None)
        stream.known.clear()
        self._drop_views()

    def show(self, stream: Stream, paths: Collection[str]) -> None:
        """Make these the pages of the stream, and put the new ones into it. Unknown paths are ignored."""
        stream.paths = tuple(dict.fromkeys(paths))[:MAX_VIEWS]
        before, stream.known = stream.known, {}
        for path in stream.paths:
            if (key := self._view_key(stream, path)) is not None:
                stream.known[key] = before.get(key, 0)
                self._send(stream, key)
        self._drop_views()

    def use(self, stream: Stream, identity: Identity, sight: Sight) -> None:
        """Apply what the reader may see now: where that changed, nothing of before is sent any more."""
        if stream.identity != identity or stream.sight is not sight:
            stream.identity, stream.sight, stream.known = identity, sight, {}
            stream.outbox.clear()
            self._drop_views()
            self.show(stream, stream.paths)

    def whole(self, stream: Stream) -> list[bytes]:
        """Return the whole pages of a stream, for a reader that missed events."""
        events = [encoded("hello", Hello(stream.id)), encoded("beat", self._beat(stream.sight))]
        for key in stream.known:
            stream.known[key] = self._views[key].version
            events += [self._views[key].event(0)] if stream.known[key] else []
        return events

    def _view_key(self, stream: Stream, path: str) -> ViewKey | None:
        address = self._pages.find(path)
        if address is None or not address.spec.live:
            return None
        key = ViewKey(address.path, stream.sight, stream.id if address.spec.prepare is not None else "")
        if key not in self._views:
            self._views[key] = View(address, stream.sight, stream.identity)
        return key

    def _drop_views(self) -> None:
        used = {key for stream in self._streams.values() for key in stream.known}
        for key in self._views.keys() - used:
            del self._views[key]
            self._rendered.pop(key, None)
            if (task := self._preparing.get(key)) is not None:
                task.cancel()

    async def render_all(self) -> None:
        """Render each view of which something changed, and put the events into the streams."""
        self._drop_streams()
        for key, view in list(self._views.items()):
            if view.address.spec.prepare is None:
                await self._render(key, view)
            elif key not in self._preparing and self._is_due(key, view):
                self._prepare(key, view)
            await self._clock.sleep(0)  # other tasks run between two views

    def _is_due(self, key: ViewKey, view: View) -> bool:
        pause = TICK_SECONDS if view.address.spec.prepare is None else PREPARED_SECONDS
        last = self._rendered.get(key)
        due = last is None or self._clock.monotonic() >= last + pause * 0.9
        return due and (view.is_stale or view.address.spec.prepare is not None)

    def _prepare(self, key: ViewKey, view: View) -> None:
        """Render beside the loop: what the page reads may take long."""
        task = asyncio.create_task(self._render(key, view))
        self._preparing[key] = task
        task.add_done_callback(lambda _: self._preparing.pop(key))

    async def _render(self, key: ViewKey, view: View) -> None:
        if not self._is_due(key, view):
            return
        self._rendered[key] = self._clock.monotonic()
        try:
            changed = await view.render(self._now)
        except Exception:  # noqa: BLE001 - a defect that one object triggers; all other views are rendered
            _log.exception("a view failed", path=key.path)
            for stream in self._viewers(key):
                stream.put(encoded("failed", Failed(key.path)))
        else:
            for stream in self._viewers(key) if changed else ():
                self._send(stream, key)

    def _viewers(self, key: ViewKey) -> list[Stream]:
        return [stream for stream in self._streams.values() if key in stream.known]

    def _send(self, stream: Stream, key: ViewKey) -> None:
        view, known = self._views[key], stream.known[key]
        if known != view.version:
            stream.known[key] = view.version
            stream.put(view.event(known))

    def beat(self) -> None:
        """Put a sign of life into all streams that are read."""
        for stream in self._streams.values():
            if stream.reader is not None:
                stream.put(encoded("beat", self._beat(stream.sight)))

    def _beat(self, sight: Sight) -> Beat:
        freshness = sight.freshness
        return Beat(self._now(), freshness.as_of, freshness.banners)

    def _drop_streams(self) -> None:
        before = self._clock.monotonic() - RESUME_SECONDS
        for stream in list(self._streams.values()):
            if stream.reader is None and stream.left_at < before:
                self.close(stream)

    def _now(self) -> float:
        return self._clock.now().timestamp()


class Reader:
    """Reads the stream of a browser from a position on, until another reader takes it over."""

    def __init__(self, hub: Hub, stream: Stream, position: int, clock: Clock) -> None:
        self._hub, self._stream, self._position, self._clock = hub, stream, position, clock
        stream.reader = self
        stream.news.set()

    @property
    def is_current(self) -> bool:
        """Report whether no other request reads the stream."""
        return self._stream.reader is self

    def take(self) -> bytes:
        """Return all events that are new, as text; the whole pages where some were lost."""
        stream = self._stream
        stream.news.clear()
        events = stream.outbox.after(self._position)
        self._position = stream.outbox.last
        if events is None:
            events = [(self._position, event) for event in self._hub.whole(stream)]
        return b"".join(numbered(f"{stream.id}.{number}", event) for number, event in events)

    def leave(self) -> None:
        """Keep the stream for a while without a reader."""
        if self.is_current:
            self._stream.reader = None
            self._stream.left_at = self._clock.monotonic()


def position_in(last_event: str) -> tuple[str, int] | None:
    """Return stream and number of an event's identity."""
    name, _, number = last_event.rpartition(".")
    return (name, int(number)) if name and number.isascii() and number.isdigit() and len(number) < 16 else None
